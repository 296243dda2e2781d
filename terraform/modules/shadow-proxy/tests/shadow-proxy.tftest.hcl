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
  shards = { cache-0 = { listen_port = 6379, admin_port = 9400 }, "cache.1" = { listen_port = 6379, admin_port = 9400 } }
}

run "one_a_shard_that_recovers" {
  variables {
    alarm_topic_arns              = ["arn:aws:sns:eu-central-1:123456789012:alarms"]
    additional_security_group_ids = ["sg-0redis"]
  }

  assert {
    condition     = output.hosts["proxy-cache-0"].shard == "cache-0" && output.hosts["proxy-cache-1"].shard == "cache.1" && output.hosts["proxy-cache-1"].data_device != null
    error_message = "a host a shard, with a volume for its state"
  }
  assert {
    condition     = contains(aws_cloudwatch_metric_alarm.recovery["proxy-cache-0-recover"].alarm_actions, "arn:aws:automate:eu-central-1:ec2:recover") && aws_cloudwatch_metric_alarm.recovery["proxy-cache-0-recover"].metric_name == "StatusCheckFailed_System"
    error_message = "moved when its hardware fails"
  }
  assert {
    condition     = contains(aws_cloudwatch_metric_alarm.recovery["proxy-cache-1-reboot"].alarm_actions, "arn:aws:automate:eu-central-1:ec2:reboot") && aws_cloudwatch_metric_alarm.recovery["proxy-cache-1-reboot"].metric_name == "StatusCheckFailed_Instance"
    error_message = "rebooted when it hangs"
  }
}

run "refuses_two_shards_of_one_host_name" {
  command = plan

  variables {
    shards = { "cache.0" = { listen_port = 6379, admin_port = 9400 }, "Cache-0" = { listen_port = 6379, admin_port = 9400 } }
  }
  expect_failures = [var.shards]
}

run "refuses_a_port_that_is_none" {
  command = plan

  variables {
    shards = { cache-0 = { listen_port = 0, admin_port = 9400 } }
  }
  expect_failures = [var.shards]
}

run "refuses_one_port_for_both" {
  command = plan

  variables {
    shards = { cache-0 = { listen_port = 9400, admin_port = 9400 } }
  }
  expect_failures = [var.shards]
}

run "refuses_no_subnet" {
  command = plan

  variables {
    base = { vpc_id = "vpc-0a", subnet_ids = [], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  expect_failures = [var.base]
}

run "two_a_shard_in_two_subnets" {
  variables {
    per_shard         = 2
    allow_single_zone = true
  }

  assert {
    condition     = keys(output.hosts) == ["proxy-cache-0", "proxy-cache-0-b", "proxy-cache-1", "proxy-cache-1-b"] && [for host in values(output.hosts) : host.role] == ["first", "standby", "first", "standby"]
    error_message = "a first one and its standby: ${jsonencode(output.hosts)}"
  }
  assert {
    condition     = local.hosts["proxy-cache-0"].subnet_id == "subnet-0a" && local.hosts["proxy-cache-0-b"].subnet_id == "subnet-0b" && local.hosts["proxy-cache-1"].subnet_id == "subnet-0b" && local.hosts["proxy-cache-1-b"].subnet_id == "subnet-0c"
    error_message = "the first ones are where they are without a standby"
  }
  assert {
    condition     = output.hosts["proxy-cache-1-b"].shard == "cache.1" && output.alarms == 8
    error_message = "each is recovered"
  }
}

run "refuses_two_in_one_zone" {
  command = plan

  variables {
    per_shard = 2
  }
  expect_failures = [output.hosts]
}

run "refuses_two_proxies_of_one_host_name" {
  command = plan

  variables {
    per_shard         = 2
    allow_single_zone = true
    shards            = { a = { listen_port = 6379, admin_port = 9400 }, a-b = { listen_port = 6379, admin_port = 9400 } }
  }
  expect_failures = [output.hosts]
}

run "refuses_three" {
  command = plan

  variables {
    per_shard = 3
  }
  expect_failures = [var.per_shard]
}
