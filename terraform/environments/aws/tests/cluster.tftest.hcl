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
  plan_file = "tests/plans/cluster.yaml"
  vpc_id    = "vpc-0a"
  # Terraform's mock makes up a zone for each subnet, OpenTofu's one for all.
  allow_single_zone         = true
  subnet_ids                = ["subnet-0a", "subnet-0b"]
  ami_id                    = "ami-0123456789abcdef0"
  zone                      = { name = "cache.internal" }
  client_security_group_ids = ["sg-0aaa"]
  bucket_name               = "checkout-cache-reports"
  source_secrets            = { source-proxy = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:redis-AbCdEf" }
  names_via                 = "nlb"
  sources                   = { cluster = { version = "6.2", memory_bytes = 1073741824, ranges = ["10.0.0.0/24"] } }
  cluster = {
    source = ["0-5460", "5461-10922", "10923-16383"]
    target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" }
  }
}

run "applications_reach_the_nodes_when_they_leave_the_proxies" {
  command = plan

  variables {
    cluster = { source = ["0-5460", "5461-10922", "10923-16383"], target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" }, clients_reach_keydb = true }
  }
  assert {
    condition     = contains(keys(output.paths), "sg-0aaa → keydb:6390") && !contains(keys(output.paths), "sg-0aaa → keydb:16390")
    error_message = "at KeyDB's own port: ${jsonencode(output.paths)}"
  }
}

# Six masters of the source, one of which has two ranges, and a master of the target that has no slots yet.
run "more_masters_than_targets" {
  command = plan

  variables {
    sources = { cluster = { version = "6.2", memory_bytes = 1073741824 } }
    cluster = {
      source = ["0-2730", "2731-5460,16383", "5461-8191", "8192-10922", "10923-13652", "13653-16382"]
      target = { keydb-0 = "0-5460,16383", keydb-1 = "5461-10922", keydb-2 = "10923-16382", keydb-3 = "" }
    }
  }
  assert {
    condition     = { for name, shard in output.shards : name => "${shard.target} ${shard.port}" } == { slots-0 = "keydb-0 7000", slots-2731 = "keydb-0 7001", slots-5461 = "keydb-1 7002", slots-8192 = "keydb-1 7003", slots-10923 = "keydb-2 7004", slots-13653 = "keydb-2 7005" }
    error_message = "a shard for each master of the source, whatever its ranges are: ${jsonencode(output.shards)}"
  }
  assert {
    condition     = output.inventory.all.vars.infra_targets.keydb-3.slots == "" && length(output.inventory.all.vars.infra_targets.keydb-3.shards) == 0 && contains(keys(output.inventory.all.children.keydb.hosts), "keydb-3-2")
    error_message = "a master without slots, with its replica"
  }
}

run "a_target_has_room_for_the_masters_that_it_takes" {
  command = plan

  variables {
    cluster = {
      source = ["0-2730", "2731-5460", "5461-10922", "10923-16383"]
      target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383", keydb-3 = "" }
    }
  }
  assert {
    condition     = local.required_bytes == { keydb-0 = 2147483648, keydb-1 = 1073741824, keydb-2 = 1073741824, keydb-3 = 0 }
    error_message = "memory_bytes is that of each master: ${jsonencode(local.required_bytes)}"
  }
}

run "a_cluster_to_one_keydb_with_a_hot_master_cut" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-one-keydb.yaml"
    cluster   = { source = ["0-5460", "5461-10922", "10923-16383"] }
  }
  assert {
    condition     = { for name, shard in output.shards : name => "${shard.target} ${shard.port}" } == { slots-0 = "keydb-0 7000", slots-2730 = "keydb-0 7001", slots-5461 = "keydb-0 7002", slots-10923 = "keydb-0 7003" }
    error_message = "the cut is one shard more: ${jsonencode(output.shards)}"
  }
  assert {
    condition     = keys(output.inventory.all.children.haproxy.children) == ["keydb"] && output.inventory.all.vars.infra_targets.keydb-0.slots == null && contains(keys(output.paths), "shadow_proxy → keydb:6379") && !contains(keys(output.paths), "keydb → keydb:16390")
    error_message = "one target behind HAProxy, without a bus"
  }
}

run "a_master_of_the_source_may_be_divided_where_that_is_wanted" {
  command = plan

  variables {
    cluster = { source = ["0-8191", "8192-16383"], target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" }, unaligned = true }
  }
  assert {
    condition     = sort(keys(output.shards)) == tolist(sort(["slots-0", "slots-5461", "slots-8192", "slots-10923"]))
    error_message = "four shards for two masters: ${jsonencode(output.shards)}"
  }
}

run "refuses_slots_that_are_none" {
  command = plan

  variables {
    cluster = { source = ["all"] }
  }
  expect_failures = [var.cluster]
}

run "refuses_a_cluster_beside_shards" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-and-shards.yaml"
  }
  expect_failures = [var.plan_file]
}

run "refuses_a_plan_with_a_cluster_of_unknown_slots" {
  command = plan

  variables {
    cluster = { target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" } }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_slots_that_no_master_of_the_source_has" {
  command = plan

  variables {
    cluster = { source = ["0-5460", "5461-10922", "10924-16383"], target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" } }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_slots_that_two_masters_of_the_target_have" {
  command = plan

  variables {
    cluster = { source = ["0-5460", "5461-10922", "10923-16383"], target = { keydb-0 = "0-5460", keydb-1 = "5460-10922", keydb-2 = "10923-16383" }, unaligned = true }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_a_master_of_the_source_that_is_divided" {
  command = plan

  variables {
    cluster = { source = ["0-8191", "8192-16383"], target = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" } }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_a_cluster_that_cannot_promote" {
  command = plan

  variables {
    cluster = { source = ["0-8191", "8192-16383"], target = { keydb-0 = "0-8191", keydb-1 = "8192-16383", keydb-2 = "" } }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_a_cluster_of_active_nodes" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-active-active.yaml"
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_nodes_that_are_not_made_here" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-other-nodes.yaml"
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_nodes_of_a_cluster_without_their_slots" {
  command = plan

  variables {
    cluster = { source = ["0-5460", "5461-10922", "10923-16383"] }
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_a_cluster_behind_records" {
  command = plan

  variables {
    names_via = "dns"
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_replicas_that_have_no_port" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-replicas.yaml"
  }
  expect_failures = [terraform_data.cluster]
}

run "refuses_to_announce_an_address" {
  command = plan

  variables {
    plan_file = "tests/plans/cluster-announces-an-address.yaml"
  }
  expect_failures = [terraform_data.cluster]
}

# Applied, and last: the other runs have other shards, whose hosts are at other places.
run "a_cluster_beside_a_cluster" {
  assert {
    condition     = jsonencode(output.shards) == jsonencode({ slots-0 = { target = "keydb-0", port = 7000 }, slots-10923 = { target = "keydb-2", port = 7002 }, slots-5461 = { target = "keydb-1", port = 7001 } })
    error_message = "one shard for each master: ${jsonencode(output.shards)}"
  }
  assert {
    condition     = keys(output.inventory.all.children.keydb.hosts) == ["keydb-0-1", "keydb-0-2", "keydb-1-1", "keydb-1-2", "keydb-2-1", "keydb-2-2"]
    error_message = "three masters, and a replica of each"
  }
  assert {
    condition     = { for name, target in output.inventory.all.vars.infra_targets : name => "${target.primary} ${target.slots} ${join(",", target.shards)}" } == { keydb-0 = "keydb-0-1 0-5460 slots-0", keydb-1 = "keydb-1-1 5461-10922 slots-5461", keydb-2 = "keydb-2-1 10923-16383 slots-10923" }
    error_message = "who has which slots: ${jsonencode(output.inventory.all.vars.infra_targets)}"
  }
  assert {
    condition     = { for name, host in output.inventory.all.children.shadow_proxy.hosts : name => "${host.infra_shard} ${host.infra_listen_port} ${host.infra_initial_role}" } == { proxy-slots-0 = "slots-0 7000 first", proxy-slots-0-b = "slots-0 7000 standby", proxy-slots-10923 = "slots-10923 7002 first", proxy-slots-10923-b = "slots-10923 7002 standby", proxy-slots-5461 = "slots-5461 7001 first", proxy-slots-5461-b = "slots-5461 7001 standby" }
    error_message = "two proxies for each shard, whose ports count up"
  }
  assert {
    condition     = { for name, of in output.names : of.name => "${of.shard} ${of.port} ${of.to}" } == { "cache.cache.internal" = "slots-0 7000 proxy", "cache-slots-5461.cache.internal" = "slots-5461 7001 proxy", "cache-slots-10923.cache.internal" = "slots-10923 7002 proxy" }
    error_message = "what CLUSTER replies name is a port of the load balancer: ${jsonencode(output.names)}"
  }
  assert {
    condition     = length(output.inventory.all.children.haproxy.children) == 0 && length(output.inventory.all.children.sentinel.children) == 0 && length(output.inventory.all.children.sentinel.hosts) == 0
    error_message = "a cluster needs neither HAProxy nor Sentinels"
  }
  assert {
    condition = sort([for path in keys(output.paths) : path if !strcontains(path, "0.0.0.0/0")]) == tolist(sort([
      "keydb → keydb:6390", "keydb → keydb:16390", "shadow_proxy → keydb:6390",
      "monitoring → keydb:6390", "monitoring → keydb:9100", "monitoring → keydb:9121",
      "monitoring → shadow_proxy:9100", "monitoring → shadow_proxy:9400", "names → shadow_proxy:9400",
      "sg-0aaa → names:7000", "sg-0aaa → names:7001", "sg-0aaa → names:7002",
      "names → shadow_proxy:7000", "names → shadow_proxy:7001", "names → shadow_proxy:7002",
      "sg-0aaa → shadow_proxy:7000", "sg-0aaa → shadow_proxy:7001", "sg-0aaa → shadow_proxy:7002",
      "shadow_proxy → 10.0.0.0/24:6379", "shadow_proxy → 10.0.0.0/24:6380", "monitoring → 10.0.0.0/24:6379", "monitoring → 10.0.0.0/24:6380",
    ]))
    error_message = "the bus is open between the nodes alone, and KeyDB to no application: ${jsonencode(output.paths)}"
  }
  assert {
    condition     = output.inventory.all.vars.infra_sources.slots-0.kind == "cluster" && strcontains(output.source_access.slots-0, "every node of the cluster")
    error_message = "the source is a cluster"
  }
}
