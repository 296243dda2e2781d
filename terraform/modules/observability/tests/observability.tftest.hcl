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
  watched = { keydb-0-1 = { id = "i-0a", cpu_percent = 80 } }
}

run "watches" {
  variables {
    emails = ["oncall@example.com"]
  }

  assert {
    condition     = sort(keys(aws_cloudwatch_metric_alarm.down)) == tolist(["keydb-0-1", "monitoring"]) && aws_cloudwatch_metric_alarm.down["keydb-0-1"].dimensions.InstanceId == "i-0a" && aws_cloudwatch_metric_alarm.down["keydb-0-1"].treat_missing_data == "breaching"
    error_message = "every host, itself among them; silence is an alarm"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.cpu["keydb-0-1"].threshold == 80 && output.alarms == 4
    error_message = "two alarms a host"
  }
  assert {
    condition     = aws_sns_topic.alarms.kms_master_key_id == var.base.kms_key_arn && length(aws_sns_topic_subscription.email) == 1
    error_message = "an encrypted topic that tells people"
  }
}

run "refuses_more_than_all_cores" {
  command = plan

  variables {
    watched = { keydb-0-1 = { id = "i-0a", cpu_percent = 160 } }
  }
  expect_failures = [var.watched]
}

run "refuses_to_watch_itself_twice" {
  command = plan

  variables {
    watched = { monitoring = { id = "i-0a", cpu_percent = 80 } }
  }
  expect_failures = [var.watched]
}

run "refuses_an_address_without_domain" {
  command = plan

  variables {
    emails = ["oncall"]
  }
  expect_failures = [var.emails]
}

run "refuses_no_subnet" {
  command = plan

  variables {
    base = { vpc_id = "vpc-0a", subnet_ids = [], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  expect_failures = [var.base]
}
