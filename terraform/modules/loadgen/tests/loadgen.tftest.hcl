mock_provider "aws" {
  mock_data "aws_subnet" {
    defaults = { vpc_id = "vpc-0a", availability_zone = "eu-central-1a", map_public_ip_on_launch = false }
  }
  mock_data "aws_ec2_instance_type" {
    defaults = { supported_architectures = ["arm64"], memory_size = 16384, default_vcpus = 2 }
  }
  mock_data "aws_ami" {
    defaults = { architecture = "arm64", root_device_name = "/dev/xvda" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_ebs_volume" {
    defaults = { id = "vol-0123" }
  }
}

variables {
  name = "checkout"
  base = {
    vpc_id      = "vpc-0a"
    subnet_ids  = ["subnet-0a", "subnet-0b", "subnet-0c"]
    ami_id      = "ami-0123456789abcdef0"
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k"
  }
}

run "switched_off" {
  command = plan

  assert {
    condition     = length(output.hosts) == 0 && output.security_group_id == null && output.billed == null
    error_message = "nothing is made, nothing costs"
  }
}

run "switched_on" {
  variables {
    hosts = 2
  }

  assert {
    condition     = keys(output.hosts) == ["loadgen-1", "loadgen-2"] && output.billed.instances["c7i.xlarge"] == 2
    error_message = "two hosts"
  }
}

run "refuses_half_a_host" {
  command = plan

  variables {
    hosts = 1.5
  }
  expect_failures = [var.hosts]
}

run "refuses_no_subnet" {
  command = plan

  variables {
    base = { vpc_id = "vpc-0a", subnet_ids = [], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  expect_failures = [var.base]
}
