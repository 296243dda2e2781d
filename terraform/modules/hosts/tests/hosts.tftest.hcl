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

run "hardened" {
  variables {
    data               = { gib = 64 }
    hosts              = { one = { subnet_id = "subnet-0a", group = "a" }, two = { subnet_id = "subnet-0b", group = "b" } }
    secret_arns        = ["arn:aws:secretsmanager:eu-central-1:123456789012:secret:a"]
    bucket_prefix_arns = ["arn:aws:s3:::b/backups/"]
    replaceable        = ["two"]
  }

  assert {
    condition     = alltrue([for host in aws_instance.this : host.metadata_options[0].http_tokens == "required" && host.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "IMDSv2 only"
  }
  assert {
    condition     = alltrue([for host in aws_instance.this : host.root_block_device[0].encrypted && host.root_block_device[0].volume_type == "gp3" && host.root_block_device[0].kms_key_id == var.kms_key_arn])
    error_message = "the root volume is gp3, encrypted with the given key"
  }
  assert {
    condition     = alltrue([for volume in aws_ebs_volume.data : volume.encrypted && volume.type == "gp3" && volume.kms_key_id == var.kms_key_arn && volume.final_snapshot])
    error_message = "data volumes are gp3, encrypted with the given key, and leave a snapshot"
  }
  assert {
    condition     = alltrue([for host in aws_instance.this : !host.associate_public_ip_address]) && aws_instance.this["one"].placement_group == "checkout-keydb-a" && aws_instance.this["two"].placement_group == "checkout-keydb-b" && alltrue([for group in aws_placement_group.of : group.strategy == "spread"])
    error_message = "no public address, racks of their own in each group"
  }
  assert {
    condition     = aws_instance.this["one"].disable_api_termination && !aws_instance.this["one"].force_destroy
    error_message = "hosts are protected"
  }
  assert {
    condition     = !aws_instance.this["two"].disable_api_termination && aws_instance.this["two"].force_destroy
    error_message = "replaceable hosts are not"
  }
  assert {
    condition     = output.hosts["one"].data_device == "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123" && output.hosts["one"].memory_bytes == 16384 * 1024 * 1024
    error_message = "the device has the name that udev gives it"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.secrets[0].policy).Statement[0].Resource == ["arn:aws:secretsmanager:eu-central-1:123456789012:secret:a"] && jsondecode(aws_iam_role_policy.bucket[0].policy).Statement[0].Resource == ["arn:aws:s3:::b/backups/*"]
    error_message = "rights are to the given secrets and below the given prefixes only"
  }
  assert {
    condition     = output.billed.gib == 2 * (16 + 64)
    error_message = "root and data volumes are billed"
  }
}

# The state that later runs change one thing of.
run "made" {
  variables {
    hosts = { one = { subnet_id = "subnet-0a", group = "a" }, two = { subnet_id = "subnet-0b", group = "b" } }
    data  = { gib = 64 }
  }
}

# The mock applies changes, and makes up a new ID for what is replaced.
run "a_new_image_type_or_key_changes_no_host" {
  variables {
    hosts         = { one = { subnet_id = "subnet-0a", group = "a" }, two = { subnet_id = "subnet-0b", group = "a" } }
    data          = { gib = 64 }
    ami_id        = "ami-11111111"
    instance_type = "r7g.xlarge"
    key_name      = "other"
    root_gib      = 32
    tags          = { Team = "cache" }
  }

  assert {
    condition     = alltrue([for name, host in aws_instance.this : host.id == run.made.hosts[name].id && host.ami == "ami-0123456789abcdef0" && host.instance_type == "r7g.large"])
    error_message = "a host keeps what it was made with"
  }
  assert {
    condition     = alltrue([for host in aws_instance.this : host.tags.Team == "cache"])
    error_message = "tags are changed in place"
  }
}

run "refuses_to_move_a_host_to_another_subnet" {
  command = plan

  variables {
    data  = { gib = 64 }
    hosts = { one = { subnet_id = "subnet-0b" }, two = { subnet_id = "subnet-0b" } }
  }
  expect_failures = [aws_instance.this]
}

run "another_group_changes_no_host" {
  variables {
    hosts = { one = { subnet_id = "subnet-0a" }, two = { subnet_id = "subnet-0b", group = "c" } }
    data  = { gib = 64 }
  }

  assert {
    condition     = alltrue([for name, host in aws_instance.this : host.id == run.made.hosts[name].id && host.placement_group == { one = "checkout-keydb-a", two = "checkout-keydb-b" }[name]])
    error_message = "a host keeps its rack"
  }
}

run "a_replaceable_host_may_be_moved" {
  command = plan

  variables {
    data        = { gib = 64 }
    hosts       = { one = { subnet_id = "subnet-0b" }, two = { subnet_id = "subnet-0b" } }
    replaceable = ["one"]
  }

  assert {
    condition     = aws_instance.this["one"].subnet_id == "subnet-0b"
    error_message = "it is moved"
  }
}

run "one_host_is_replaced_by_its_number" {
  variables {
    hosts         = { one = { subnet_id = "subnet-0a", group = "a" }, two = { subnet_id = "subnet-0b", group = "a" } }
    data          = { gib = 64 }
    ami_id        = "ami-11111111"
    instance_type = "r7g.xlarge"
    replaceable   = ["two"]
    replace       = { two = 1 }
  }

  assert {
    condition     = aws_instance.this["one"].id == run.made.hosts["one"].id && aws_instance.this["one"].ami == "ami-0123456789abcdef0"
    error_message = "the other host stays"
  }
  assert {
    condition     = aws_instance.this["two"].id != run.made.hosts["two"].id && aws_instance.this["two"].ami == "ami-11111111" && aws_instance.this["two"].instance_type == "r7g.xlarge"
    error_message = "the host is made anew with what holds now"
  }
}

run "nothing_is_protected_before_destroy" {
  variables {
    protect = false
  }

  assert {
    condition     = alltrue([for host in aws_instance.this : !host.disable_api_termination && host.force_destroy])
    error_message = "terraform destroy ends all hosts"
  }
}

run "no_rights_for_nothing" {
  variables {
    session_manager = false
  }

  assert {
    condition     = length(aws_iam_role_policy.session_manager) + length(aws_iam_role_policy.secrets) + length(aws_iam_role_policy.bucket) == 0 && length(aws_ebs_volume.data) == 0
    error_message = "a host that needs nothing may do nothing"
  }
}

run "refuses_a_public_subnet" {
  command = plan

  override_data {
    target = data.aws_subnet.this
    values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1a", map_public_ip_on_launch = true }
  }
  expect_failures = [aws_instance.this["one"], aws_instance.this["two"]]
}

run "refuses_a_subnet_of_another_vpc" {
  command = plan

  override_data {
    target = data.aws_subnet.this
    values = { vpc_id = "vpc-0b", availability_zone = "eu-central-1a", map_public_ip_on_launch = false }
  }
  expect_failures = [aws_instance.this["one"], aws_instance.this["two"]]
}

run "refuses_an_ami_of_another_architecture" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { architecture = "x86_64", root_device_name = "/dev/xvda" }
  }
  expect_failures = [aws_instance.this["one"], aws_instance.this["two"]]
}

run "refuses_a_long_name" {
  command = plan

  variables {
    name = "a-name-of-thirty-eight-characters-in-x"
  }
  expect_failures = [var.name]
}

run "refuses_a_host_name_that_is_no_label" {
  command = plan

  variables {
    hosts = { "One_1" = { subnet_id = "subnet-0a" } }
  }
  expect_failures = [var.hosts]
}

run "refuses_a_vpc_by_name" {
  command = plan

  variables {
    vpc_id = "main"
  }
  expect_failures = [var.vpc_id]
}

run "refuses_an_ami_alias" {
  command = plan

  variables {
    ami_id = "resolve:ssm:/debian/12"
  }
  expect_failures = [var.ami_id]
}

run "refuses_an_instance_type_without_size" {
  command = plan

  variables {
    instance_type = "r7g"
  }
  expect_failures = [var.instance_type]
}

run "refuses_a_small_root_volume" {
  command = plan

  variables {
    root_gib = 4
  }
  expect_failures = [var.root_gib]
}

run "refuses_an_empty_data_volume" {
  command = plan

  variables {
    data = { gib = 0 }
  }
  expect_failures = [var.data]
}

run "refuses_too_many_iops" {
  command = plan

  variables {
    data = { gib = 64, iops = 20000 }
  }
  expect_failures = [var.data]
}

run "refuses_more_throughput_than_iops_allow" {
  command = plan

  variables {
    data = { gib = 64, throughput = 900 }
  }
  expect_failures = [var.data]
}
