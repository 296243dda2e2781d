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

run "tells_that_the_target_cannot_load_it" {
  command = plan

  variables {
    sources = { cache-0 = { version = "7.0", memory_bytes = 1073741824 }, cache-1 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [check.source_loads_by_itself]
}

run "tells_what_nobody_said" {
  command = plan

  variables {
    sources = { cache-0 = { version = "6.2" } }
  }
  expect_failures = [check.source_is_known]
}

run "refuses_a_plan_that_is_not_there" {
  command = plan

  variables {
    plan_file = "tests/plans/nowhere.yaml"
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_plan_that_is_no_yaml" {
  command = plan

  variables {
    plan_file = "tests/plans/broken.yaml"
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_plan_without_shards" {
  command = plan

  variables {
    plan_file = "tests/plans/no-shards.yaml"
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_plan_with_a_long_name" {
  command = plan

  variables {
    plan_file = "tests/plans/long-name.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_counter_with_active_active" {
  command = plan

  variables {
    plan_file = "tests/plans/active-active-counter.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.counters]
}

run "refuses_a_leaderboard_with_active_active" {
  command = plan

  variables {
    plan_file = "tests/plans/active-active-leaderboard.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.counters]
}

run "refuses_a_default_that_counts_with_active_active" {
  command = plan

  variables {
    plan_file = "tests/plans/active-active-default-counter.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.counters]
}

run "refuses_a_target_in_another_zone" {
  command = plan

  variables {
    plan_file = "tests/plans/other-zone.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
    names     = {}
  }
  expect_failures = [terraform_data.plan]
}

run "refuses_a_target_behind_sentinel" {
  command = plan

  variables {
    plan_file = "tests/plans/sentinel-target.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_target_with_two_ports" {
  command = plan

  variables {
    plan_file = "tests/plans/two-ports.yaml"
  }
  expect_failures = [terraform_data.plan]
}

run "refuses_a_proxy_on_loopback" {
  command = plan

  variables {
    plan_file = "tests/plans/loopback.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.plan]
}

run "refuses_a_port_that_is_taken" {
  command = plan

  variables {
    plan_file = "tests/plans/busy-port.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
    names     = {}
  }
  expect_failures = [terraform_data.plan]
}

run "refuses_a_source_at_a_public_address" {
  command = plan

  variables {
    plan_file = "tests/plans/public-source.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.addresses]
}

run "refuses_an_unknown_host" {
  command = plan

  variables {
    replaceable = ["keydb-9-9"]
  }
  expect_failures = [terraform_data.host_names]
}

run "refuses_a_vpc_by_name" {
  command = plan

  variables {
    vpc_id = "main"
  }
  expect_failures = [var.vpc_id]
}

run "refuses_a_subnet_by_name" {
  command = plan

  variables {
    subnet_ids = ["private-a"]
  }
  expect_failures = [var.subnet_ids]
}

run "refuses_a_subnet_named_twice" {
  command = plan

  variables {
    subnet_ids = ["subnet-0a", "subnet-0a"]
  }
  expect_failures = [var.subnet_ids]
}

run "refuses_an_ami_by_name" {
  command = plan

  variables {
    ami_id = "debian-12"
  }
  expect_failures = [var.ami_id]
}

run "refuses_an_unknown_access" {
  command = plan

  variables {
    access = { via = "telnet" }
  }
  expect_failures = [var.access]
}

run "refuses_ssh_without_a_key" {
  command = plan

  variables {
    access = { via = "ssh", from = ["sg-0a"] }
  }
  expect_failures = [var.access]
}

run "refuses_ssh_from_the_internet" {
  command = plan

  variables {
    access = { via = "ssh", key_name = "ops", from = ["203.0.113.0/24"] }
  }
  expect_failures = [var.access]
}

run "refuses_clients_without_a_security_group" {
  command = plan

  variables {
    client_security_group_ids = []
  }
  expect_failures = [var.client_security_group_ids]
}

run "refuses_a_source_group_by_name" {
  command = plan

  variables {
    source_client_security_group_ids = ["redis-clients"]
  }
  expect_failures = [var.source_client_security_group_ids]
}

run "refuses_a_source_secret_of_another_name" {
  command = plan

  variables {
    source_secrets = { redis = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf" }
  }
  expect_failures = [var.source_secrets]
}

run "refuses_a_source_secret_by_name" {
  command = plan

  variables {
    source_secrets = { source-proxy = "redis" }
  }
  expect_failures = [var.source_secrets]
}

run "refuses_parameters_without_values" {
  command = plan

  variables {
    passwords = { store = "ssm", generate = false }
  }
  expect_failures = [var.passwords]
}

run "refuses_an_unknown_password" {
  command = plan

  variables {
    passwords = { rotation = { root = { use = "1", accept = ["1"] } } }
  }
  expect_failures = [var.passwords]
}

run "refuses_one_port_for_two" {
  command = plan

  variables {
    ports = { keydb = 9100 }
  }
  expect_failures = [var.ports]
}

run "refuses_an_internet_by_name" {
  command = plan

  variables {
    internet = "everywhere"
  }
  expect_failures = [var.internet]
}

run "refuses_a_price_below_nothing" {
  command = plan

  variables {
    prices = { gib_month = -1 }
  }
  expect_failures = [var.prices]
}

run "refuses_a_source_of_no_shard" {
  command = plan

  variables {
    sources = { cache-0 = { version = "6.2", memory_bytes = 1 }, cache-1 = { version = "6.2", memory_bytes = 1 }, cache-11 = { version = "6.2", memory_bytes = 1 } }
  }
  expect_failures = [terraform_data.sources]
}

run "refuses_a_password_file_without_its_secret" {
  command = plan

  variables {
    source_secrets = {}
  }
  expect_failures = [terraform_data.sources]
}

run "refuses_a_password_file_that_ansible_does_not_write" {
  command = plan

  variables {
    plan_file = "tests/plans/other-secret.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [terraform_data.sources]
}

run "refuses_a_public_range_of_a_source" {
  command = plan

  variables {
    sources = { cache-0 = { version = "6.2", memory_bytes = 1073741824, ranges = ["8.8.8.0/24"] }, cache-1 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  expect_failures = [var.sources]
}

run "refuses_a_host_name_for_alerts" {
  command = plan

  variables {
    monitoring = { alerts_to = { mail = { to = "mail.example.net", ports = [587] } } }
  }
  expect_failures = [var.monitoring]
}

run "refuses_alerts_to_no_port" {
  command = plan

  variables {
    monitoring = { alerts_to = { mail = { to = "10.0.5.25/32", ports = [] } } }
  }
  expect_failures = [var.monitoring]
}

run "refuses_three_proxies_a_shard" {
  command = plan

  variables {
    shadow_proxy = { per_shard = 3 }
  }
  expect_failures = [var.shadow_proxy]
}

run "refuses_an_image_of_amazon_linux" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "al2023-ami-2023.6.20241121.0-kernel-6.1-arm64", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
  expect_failures = [terraform_data.image]
}

run "refuses_an_image_of_rhel" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "RHEL-9.4.0_HVM-20240605-arm64-82-Hourly2-GP3", architecture = "arm64", platform_details = "Red Hat Enterprise Linux", root_device_name = "/dev/xvda" }
  }
  expect_failures = [terraform_data.image]
}

run "refuses_an_image_of_rhel_under_a_name_of_its_own" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "base-image-2026-11", architecture = "arm64", platform_details = "Red Hat Enterprise Linux", root_device_name = "/dev/xvda" }
  }
  expect_failures = [terraform_data.image]
}

run "refuses_an_image_of_an_older_debian" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "debian-11-arm64-20240104-1616", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
  expect_failures = [terraform_data.image]
}

run "refuses_an_image_of_an_older_ubuntu" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "ubuntu/images/hvm-ssd/ubuntu-focal-20.04-arm64-server-20240126", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
  expect_failures = [terraform_data.image]
}

run "takes_an_image_of_debian_12" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "debian-12-arm64-20241004-1890", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
}

run "takes_an_image_of_debian_13" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "debian-13-arm64-20250814-2204", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
}

run "takes_an_image_of_ubuntu_22_04" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-arm64-server-20240927", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
}

run "takes_an_image_of_ubuntu_24_04" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-20240927", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
}

# The preflight looks at the hosts that it makes.
run "takes_an_image_with_a_name_of_its_own" {
  command = plan

  override_data {
    target = data.aws_ami.this
    values = { name = "base-image-2026-11", architecture = "arm64", platform_details = "Linux/UNIX", root_device_name = "/dev/xvda" }
  }
}
