mock_provider "aws" {
  mock_data "aws_subnet" {
    defaults = { vpc_id = "vpc-0a", map_public_ip_on_launch = false }
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
  mock_data "aws_vpc" {
    defaults = { cidr_block = "10.0.0.0/16" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_secretsmanager_random_password" {
    defaults = { random_password = "drawn" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:123456789012:checkout-cache-alarms" }
  }
}
override_data {
  target = module.migration.module.keydb.module.hosts.data.aws_subnet.this["subnet-0b"]
  values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1b", map_public_ip_on_launch = false }
}
variables {
  region                    = "eu-central-1"
  vpc_id                    = "vpc-0a"
  subnet_ids                = ["subnet-0a", "subnet-0b"]
  ami_id                    = "ami-0123456789abcdef0"
  client_security_group_ids = ["sg-0a"]
  bucket_name               = "example-reports"
  redis_version             = "6.2"
  redis_maxmemory           = 8589934592
}

run "plans" {
  command = plan

  assert {
    condition     = keys(output.inventory.all.children.keydb.hosts) == ["keydb-0-1", "keydb-0-2"] && output.inventory.all.vars.infra_names.checkout.to == "source"
    error_message = "a target of two nodes, and the name leads to the old Redis"
  }
  assert {
    condition     = output.inventory.all.vars.infra_sources.cache-0.rdb_version == 9 && keys(output.source_access) == tolist(["cache-0"])
    error_message = "what the old Redis is, and what it must let in"
  }
}
