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
variables {
  plan_file = "tests/plans/checkout.yaml"
  vpc_id    = "vpc-0a"
  # Terraform's mock makes up a zone for each subnet, OpenTofu's one for all.
  allow_single_zone         = true
  subnet_ids                = ["subnet-0a", "subnet-0b"]
  ami_id                    = "ami-0123456789abcdef0"
  zone                      = { name = "cache.internal" }
  client_security_group_ids = ["sg-0aaa"]
  bucket_name               = "checkout-cache-reports"
  source_secrets            = { source-proxy = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:redis-AbCdEf" }
  names                     = { checkout = { shard = "cache-0", to = "proxy" } }
  sources                   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 }, cache-1 = { version = "6.2", memory_bytes = 1073741824 } }
}

run "without_prices" {
  command = plan

  assert {
    condition     = output.cost.month == null && contains(output.cost.without_price, "instances r7i.large") && output.cost.parts["instances r7i.large"].count == 2
    error_message = "counts, and which prices are missing"
  }
}

run "with_prices" {
  command = plan

  variables {
    prices = {
      currency      = "EUR"
      instance_hour = { "r7i.large" = 0.10, "c7i.large" = 0.08, "t3.medium" = 0.04 }
      gib_month     = 0.1
      zone_month    = 0.5
      secret_month  = 0.4
      alarm_month   = 0.1
      kms_key_month = 1
    }
  }

  # 730 h of 2 x 0.10 + 2 x 0.08 + 0.04; GiB: 2 x 80 + 2 x 32 + 80; a zone, 8 secrets, 4 + 10 alarms, a key
  assert {
    condition     = output.cost.month == 328.9 && output.cost.currency == "EUR" && length(output.cost.without_price) == 0
    error_message = "the sum of its parts: ${jsonencode(output.cost)}"
  }
}
