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
    defaults = { cidr_block = "10.0.0.0/16", cidr_block_associations = [{ association_id = "a", cidr_block = "10.0.0.0/16", state = "associated" }, { association_id = "b", cidr_block = "100.64.0.0/16", state = "associated" }] }
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

# A zone that is known only when the plan is applied has Terraform replace the volumes, whatever else the plan is about.
run "zones_are_known_while_something_else_changes" {
  command = plan

  assert {
    condition     = length(module.keydb.zones) >= 1
    error_message = "the zones of the volumes are read in the plan"
  }
}

run "only_named_paths" {
  command = plan

  assert {
    condition = sort(keys(output.paths)) == tolist(sort([
      "keydb → keydb:6379", "keydb → keydb:6380", "keydb → keydb:6390",
      "keydb → keydb:26379", "keydb → monitoring:26379", "monitoring → keydb:26379",
      "shadow_proxy → keydb:6379",
      "monitoring → keydb:6390", "monitoring → keydb:8404", "monitoring → keydb:9100", "monitoring → keydb:9121",
      "monitoring → shadow_proxy:9100", "monitoring → shadow_proxy:9400", "monitoring → shadow_proxy:9401",
      "sg-0aaa → shadow_proxy:6379",
      "shadow_proxy → 10.0.0.11/32:6379", "shadow_proxy → 10.0.0.12/32:6379",
      "monitoring → 10.0.0.11/32:6379", "monitoring → 10.0.0.12/32:6379",
      "keydb → 0.0.0.0/0:80", "keydb → 0.0.0.0/0:443", "shadow_proxy → 0.0.0.0/0:80", "shadow_proxy → 0.0.0.0/0:443", "monitoring → 0.0.0.0/0:80", "monitoring → 0.0.0.0/0:443",
    ]))
    error_message = "what is not in the table is closed: ${jsonencode(output.paths)}"
  }
  assert {
    condition     = sort(keys(output.source_access)) == tolist(["cache-0", "cache-1"])
    error_message = "what the old Redis must let in is told"
  }
}

run "applications_reach_keydb_once_a_name_leads_there" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-0", to = "target" } }
  }
  assert {
    condition     = contains(keys(output.paths), "sg-0aaa → keydb:6379") && contains(keys(output.paths), "sg-0aaa → keydb:6380")
    error_message = "and not before: ${jsonencode(output.paths)}"
  }
}

run "more_with_ssh_load_tests_and_a_load_balancer" {
  command = plan

  variables {
    access                           = { via = "ssh", key_name = "ops", from = ["sg-0bbb"] }
    loadgen                          = { hosts = 1 }
    names_via                        = "nlb"
    source_client_security_group_ids = ["sg-0ccc"]
  }

  assert {
    condition = alltrue([for path in [
      "sg-0bbb → keydb:22", "sg-0bbb → shadow_proxy:22", "sg-0bbb → monitoring:22", "sg-0bbb → loadgen:22", "sg-0bbb → monitoring:3000", "sg-0bbb → monitoring:9093",
      "loadgen → shadow_proxy:6379", "loadgen → keydb:6379", "loadgen → names:6379", "monitoring → loadgen:9100",
      "sg-0aaa → names:6379", "names → shadow_proxy:6379", "names → shadow_proxy:9400", "names → shadow_proxy:9401", "names → keydb:6379", "names → 10.0.0.11/32:6379",
    ] : contains(keys(output.paths), path)])
    error_message = "each has its path: ${jsonencode(output.paths)}"
  }
  assert {
    condition     = length(output.source_access) == 0
    error_message = "proxies are members of the group that the old Redis lets in"
  }
}

run "a_source_that_is_named_is_in_every_range_of_the_vpc" {
  command = plan

  variables {
    plan_file = "tests/plans/named-source.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824 } }
  }
  assert {
    condition     = alltrue([for range in ["10.0.0.0/16", "100.64.0.0/16"] : contains(keys(output.paths), "shadow_proxy → ${range}:6379") && contains(keys(output.paths), "monitoring → ${range}:6379")])
    error_message = "secondary ranges, too: ${jsonencode(output.paths)}"
  }
}

run "a_source_behind_a_peering_is_in_its_ranges" {
  command = plan

  variables {
    plan_file = "tests/plans/named-source.yaml"
    sources   = { cache-0 = { version = "6.2", memory_bytes = 1073741824, ranges = ["172.20.0.0/16"] } }
  }
  assert {
    condition     = contains(keys(output.paths), "shadow_proxy → 172.20.0.0/16:6379") && !contains(keys(output.paths), "shadow_proxy → 10.0.0.0/16:6379")
    error_message = "in these, and no other: ${jsonencode(output.paths)}"
  }
}

run "alerts_go_to_an_alertmanager_and_a_mail_server_of_yours" {
  command = plan

  variables {
    monitoring = { alerts_to = { "our Alertmanager" = { to = "sg-0ddd", ports = [9093] }, mail = { to = "10.0.5.25/32", ports = [587] } } }
  }
  assert {
    condition     = output.paths["monitoring → sg-0ddd:9093"] == "alerts to our Alertmanager" && output.paths["monitoring → 10.0.5.25/32:587"] == "alerts to mail"
    error_message = "nothing but these: ${jsonencode(output.paths)}"
  }
  assert {
    condition     = length([for path in keys(output.paths) : path if endswith(path, ":9093")]) == 1
    error_message = "nobody reaches Alertmanager without access.from: ${jsonencode(output.paths)}"
  }
}

run "clients_ask_the_sentinels_of_the_proxies" {
  command = plan

  variables {
    plan_file = "tests/plans/asked.yaml"
  }

  assert {
    condition     = output.paths["sg-0aaa → shadow_proxy:26400"] == "sg-0aaa to the Sentinels of the proxies"
    error_message = "each proxy is asked by its own address: ${jsonencode(output.paths)}"
  }
}
