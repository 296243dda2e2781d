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
}
variables {
  name = "checkout"
  base = {
    vpc_id      = "vpc-0a"
    subnet_ids  = ["subnet-0a", "subnet-0b", "subnet-0c"]
    ami_id      = "ami-0123456789abcdef0"
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k"
  }
  targets = ["keydb-0", "keydb-1"]
  # Terraform's mock makes up a zone for each subnet, OpenTofu's one for all.
  allow_single_zone = true
}

run "spreads_over_zones" {
  command = plan

  assert {
    condition     = keys(output.hosts) == ["keydb-0-1", "keydb-0-2", "keydb-1-1", "keydb-1-2"]
    error_message = "two nodes a target"
  }
  assert {
    condition     = local.hosts["keydb-0-1"].subnet_id != local.hosts["keydb-0-2"].subnet_id && local.hosts["keydb-1-1"].subnet_id != local.hosts["keydb-1-2"].subnet_id && local.hosts["keydb-0-1"].subnet_id != local.hosts["keydb-1-1"].subnet_id
    error_message = "nodes of a target are in different subnets, and so are the primaries"
  }
  assert {
    condition     = output.hosts["keydb-0-1"].role == "primary" && output.hosts["keydb-0-2"].role == "replica"
    error_message = "one primary a target"
  }
  assert {
    condition     = output.maxmemory_bytes == floor(16384 * 1024 * 1024 * 0.6)
    error_message = "60 % of the host's memory"
  }
}

run "active_active" {
  command = plan

  variables {
    active_active = true
  }
  assert {
    condition     = alltrue([for host in values(output.hosts) : host.role == "active"])
    error_message = "every node takes writes"
  }
}

run "a_single_zone_when_asked_for" {
  command = plan

  variables {
    base = { vpc_id = "vpc-0a", subnet_ids = ["subnet-0a"], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  assert {
    condition     = length(output.zones) == 1
    error_message = "one zone"
  }
}

run "refuses_a_single_zone" {
  command = plan

  variables {
    base              = { vpc_id = "vpc-0a", subnet_ids = ["subnet-0a"], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
    allow_single_zone = false
  }
  expect_failures = [output.hosts]
}

run "refuses_less_memory_than_the_source_has" {
  command = plan

  variables {
    required_bytes = { keydb-1 = 16384 * 1024 * 1024 * 0.7 }
  }
  expect_failures = [output.hosts]
}

run "twelve_targets_in_two_zones" {
  command = plan

  variables {
    base    = { vpc_id = "vpc-0a", subnet_ids = ["subnet-0a", "subnet-0b"], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
    targets = [for n in range(12) : "keydb-${n}"]
  }
  assert {
    condition     = length(distinct([for host in values(local.hosts) : host.group])) == 12 && max([for target in var.targets : length([for host in values(local.hosts) : host if host.group == target && host.subnet_id == "subnet-0a"])]...) == 1
    error_message = "racks of their own for the nodes of each target, which are in two zones"
  }
}

run "refuses_a_target_alone" {
  command = plan

  variables {
    nodes_per_target = 1
  }
  expect_failures = [var.nodes_per_target]
}

run "refuses_no_target" {
  command = plan

  variables {
    targets = []
  }
  expect_failures = [var.targets]
}

run "refuses_a_target_that_is_no_label" {
  command = plan

  variables {
    targets = ["KeyDB_0"]
  }
  expect_failures = [var.targets]
}

run "refuses_no_room_for_a_fork" {
  command = plan

  variables {
    maxmemory_percent = 95
  }
  expect_failures = [var.maxmemory_percent]
}

run "refuses_a_subnet_named_twice" {
  command = plan

  variables {
    base = { vpc_id = "vpc-0a", subnet_ids = ["subnet-0a", "subnet-0a"], ami_id = "ami-0123456789abcdef0", kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k" }
  }
  expect_failures = [var.base]
}
