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

run "refuses_to_delete_a_host_that_is_in_the_plan_no_more" {
  command = plan

  override_data {
    target = data.aws_instances.standing
    values = { ids = ["i-0a"] }
  }
  override_data {
    target = data.aws_instance.standing
    values = { id = "i-0a", subnet_id = "subnet-0a", placement_group = "", disable_api_termination = true, tags = { Host = "three", Name = "checkout-keydb-three" } }
  }
  expect_failures = [terraform_data.standing]
}

run "refuses_to_delete_a_volume_that_is_in_the_plan_no_more" {
  command = plan

  variables {
    data = { gib = 64 }
  }
  override_data {
    target = data.aws_ebs_volumes.standing
    values = { ids = ["vol-0a"] }
  }
  override_data {
    target = data.aws_ebs_volume.standing
    values = { id = "vol-0a", size = 64, availability_zone = "eu-central-1a", tags = { Host = "three", Name = "checkout-keydb-three-data" } }
  }
  expect_failures = [terraform_data.standing]
}

run "refuses_to_take_data_volumes_from_hosts" {
  command = plan

  override_data {
    target = data.aws_ebs_volumes.standing
    values = { ids = ["vol-0a"] }
  }
  override_data {
    target = data.aws_ebs_volume.standing
    values = { id = "vol-0a", size = 64, availability_zone = "eu-central-1a", tags = { Host = "one", Name = "checkout-keydb-one-data" } }
  }
  expect_failures = [terraform_data.standing]
}

run "leaves_the_hosts_of_a_migration_with_a_longer_name_alone" {
  command = plan

  override_data {
    target = data.aws_instances.standing
    values = { ids = ["i-0a"] }
  }
  override_data {
    target = data.aws_instance.standing
    values = { id = "i-0a", subnet_id = "subnet-0a", placement_group = "checkout-keydb-2-keydb", disable_api_termination = true, tags = { Host = "three", Name = "checkout-keydb-2-keydb-three" } }
  }
  assert {
    condition     = length(output.standing) == 0 && length(aws_placement_group.of) == 0
    error_message = "they are not of this kind"
  }
}

run "refuses_another_name_of_the_migration" {
  override_resource {
    target = terraform_data.made_as
    values = { output = "basket-keydb" }
  }
  expect_failures = [terraform_data.standing]
}
