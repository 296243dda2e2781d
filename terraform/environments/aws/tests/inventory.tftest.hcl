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

run "inventory" {
  assert {
    condition     = keys(output.inventory.all.children.keydb.hosts) == ["keydb-0-1", "keydb-0-2"] && keys(output.inventory.all.children.shadow_proxy.hosts) == ["proxy-cache-0", "proxy-cache-1"] && keys(output.inventory.all.children.monitoring.hosts) == ["monitoring"] && length(output.inventory.all.children.loadgen.hosts) == 0
    error_message = "the hosts of each group"
  }
  assert {
    condition     = output.inventory.all.children.keydb.hosts["keydb-0-1"].infra_initial_role == "primary" && output.inventory.all.children.keydb.hosts["keydb-0-2"].infra_initial_role == "replica" && output.inventory.all.children.keydb.hosts["keydb-0-1"].infra_name == "keydb-0-1.cache.internal"
    error_message = "KeyDB's nodes"
  }
  assert {
    condition     = keys(output.inventory.all.children.sentinel.children) == ["keydb"] && keys(output.inventory.all.children.sentinel.hosts) == ["monitoring"] && output.inventory.all.vars.infra_ports.sentinel == 26379
    error_message = "of two nodes none is a majority: the monitoring host has the third Sentinel"
  }
  assert {
    condition     = contains(keys(output.paths), "keydb → monitoring:26379") && contains(keys(output.paths), "monitoring → keydb:26379") && contains(keys(output.paths), "keydb → keydb:26379")
    error_message = "Sentinels reach each other"
  }
  assert {
    condition     = output.inventory.all.children.shadow_proxy.hosts["proxy-cache-0"].infra_admin_port == 9400 && output.inventory.all.children.shadow_proxy.hosts["proxy-cache-1"].infra_admin_port == 9401 && output.inventory.all.children.shadow_proxy.hosts["proxy-cache-1"].infra_shard == "cache-1"
    error_message = "the proxies have the plan's ports"
  }
  assert {
    condition     = jsonencode(output.inventory.all.vars.infra_targets) == jsonencode({ keydb-0 = { name = "keydb-0.cache.internal", writer_port = 6379, any_port = 6380, nodes = ["keydb-0-1", "keydb-0-2"], primary = "keydb-0-1", pinned = false, shards = ["cache-0", "cache-1"], slots = null } })
    error_message = "two shards, one target"
  }
  assert {
    condition     = output.inventory.all.vars.infra_sources.cache-0 == { host = "10.0.0.11", port = 6379, tls = false, kind = "redis", version = "6.2", rdb_version = 9, memory_bytes = 1073741824 }
    error_message = "the sources"
  }
  assert {
    condition     = output.inventory.all.vars.infra_ports.keydb == 6390 && output.inventory.all.vars.infra_ports.writer == 6379 && output.inventory.all.vars.infra_ports.admin == 9400
    error_message = "KeyDB's own port, and the plan's"
  }
  assert {
    condition     = output.inventory.all.vars.infra_names.checkout == { name = "checkout.cache.internal", port = 6379, to = "proxy", shard = "cache-0" }
    error_message = "the names of applications"
  }
  assert {
    condition     = output.inventory.all.vars.infra_secrets.passwords["keydb-app"] == { use = "checkout-cache/keydb-app/1", accept = ["checkout-cache/keydb-app/1"] } && !can(regex("drawn|KEYDB_PASSWORD", jsonencode(output.inventory)))
    error_message = "where passwords are, and no password"
  }
  assert {
    condition     = output.inventory.all.vars.ansible_connection == "community.aws.aws_ssm" && output.inventory.all.children.keydb.hosts["keydb-0-1"].ansible_host == output.inventory.all.children.keydb.hosts["keydb-0-1"].infra_instance_id
    error_message = "through Session Manager"
  }
  assert {
    condition     = output.inventory.all.children.keydb.hosts["keydb-0-1"].infra_data_mount == "/var/lib/keydb" && startswith(output.inventory.all.children.keydb.hosts["keydb-0-1"].infra_data_device, "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol")
    error_message = "the data volume"
  }
}

run "two_proxies_a_shard_behind_a_load_balancer" {
  command = plan

  variables {
    names_via = "nlb"
  }
  assert {
    condition     = { for name, host in output.inventory.all.children.shadow_proxy.hosts : name => "${host.infra_shard} ${host.infra_initial_role}" } == { proxy-cache-0 = "cache-0 first", proxy-cache-0-b = "cache-0 standby", proxy-cache-1 = "cache-1 first", proxy-cache-1-b = "cache-1 standby" }
    error_message = "each with its standby"
  }
}

run "over_ssh_with_load_test_hosts" {
  command = plan

  variables {
    access    = { via = "ssh", key_name = "ops", from = ["10.20.0.0/16"] }
    loadgen   = { hosts = 1 }
    plan_file = "tests/plans/active-active-safe.yaml"
    sources   = { cache-0 = { version = "7.0", memory_bytes = 1073741824 } }
  }
  expect_failures = [check.source_loads_by_itself]

  assert {
    condition     = output.inventory.all.vars.ansible_user == "admin" && !can(output.inventory.all.vars.ansible_connection)
    error_message = "ssh to private addresses"
  }
  assert {
    condition     = output.inventory.all.children.keydb.hosts["keydb-0-2"].infra_initial_role == "active" && output.inventory.all.vars.infra_targets.keydb-0.pinned
    error_message = "active nodes, with one writer for what counts"
  }
  assert {
    condition     = length(output.inventory.all.children.sentinel.children) == 0 && length(output.inventory.all.children.sentinel.hosts) == 0 && !contains(keys(output.paths), "keydb → keydb:26379")
    error_message = "active nodes need no Sentinel"
  }
  assert {
    condition     = !can(output.inventory.all.children.loadgen.hosts["loadgen-1"].infra_data_device)
    error_message = "no data volume on load-test hosts"
  }
}

run "twelve_shards_with_the_defaults" {
  command = plan

  variables {
    plan_file = "tests/plans/twelve-shards.yaml"
    names     = { checkout = { shard = "cache-0", to = "proxy" } }
    sources   = { for n in range(12) : "cache-${n}" => { version = "6.2", memory_bytes = 1073741824 } }
  }

  assert {
    condition     = length(output.inventory.all.children.keydb.hosts) == 24 && length(output.inventory.all.children.shadow_proxy.hosts) == 12
    error_message = "two nodes and a proxy for each shard"
  }
}
