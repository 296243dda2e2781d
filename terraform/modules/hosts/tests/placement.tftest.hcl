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
  name          = "checkout-keydb"
  vpc_id        = "vpc-0a"
  hosts         = { one = { subnet_id = "subnet-0a" }, two = { subnet_id = "subnet-0b" } }
  ami_id        = "ami-0123456789abcdef0"
  instance_type = "r7g.large"
  kms_key_arn   = "arn:aws:kms:eu-central-1:123456789012:key/k"
}

# As of a host that was made there: the record keeps what it said first.
run "refuses_a_host_that_was_made_elsewhere" {
  override_resource {
    target = terraform_data.placement
    values = { output = { subnet_id = "subnet-0c" } }
  }
  expect_failures = [aws_instance.this]
}
