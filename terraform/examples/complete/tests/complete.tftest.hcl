mock_provider "aws" {
  mock_data "aws_subnet" {
    defaults = { vpc_id = "vpc-0a", availability_zone = "eu-central-1a", map_public_ip_on_launch = false }
  }
  mock_data "aws_ec2_instance_type" {
    defaults = { supported_architectures = ["arm64"], memory_size = 65536, default_vcpus = 2 }
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
  mock_data "aws_instance" {
    defaults = { instance_type = "r6g.large", private_ip = "10.0.0.12", secondary_private_ips = [] }
  }
  mock_data "aws_elasticache_replication_group" {
    defaults = { cluster_mode = "disabled", node_type = "cache.r6g.large", primary_endpoint_address = "master.orders.euc1.cache.amazonaws.com", port = 6379, auth_token_enabled = true, member_clusters = ["orders-001"] }
  }
  mock_data "aws_elasticache_cluster" {
    defaults = { engine = "redis", engine_version = "6.2.6" }
  }
}
override_data {
  target = module.migration.module.keydb.module.hosts.data.aws_subnet.this["subnet-0b"]
  values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1b", map_public_ip_on_launch = false }
}
override_data {
  target = module.migration.module.shadow_proxy.module.hosts.data.aws_subnet.this["subnet-0b"]
  values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1b", map_public_ip_on_launch = false }
}
override_data {
  target = module.migration.module.source.data.aws_ec2_instance_type.this["r6g.large"]
  values = { memory_size = 16384 }
}
variables {
  region                           = "eu-central-1"
  vpc_id                           = "vpc-0a"
  subnet_ids                       = ["subnet-0a", "subnet-0b"]
  ami_id                           = "ami-0123456789abcdef0"
  client_security_group_ids        = ["sg-0a"]
  bucket_name                      = "example-reports"
  redis_instance_id                = "i-0a"
  zone_id                          = "Z0123"
  source_client_security_group_ids = ["sg-0b"]
  redis_secret_arn                 = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:redis-AbCdEf"
}

run "plans" {
  command = plan

  assert {
    condition     = output.names == { carts = { name = "carts.cache.internal", port = 6380, to = "proxy", shard = "carts" }, orders = { name = "orders.cache.internal", port = 6379, to = "proxy", shard = "orders" } }
    error_message = "two names, told apart by port: ${jsonencode(output.names)}"
  }
  assert {
    condition     = length(output.cost.without_price) == 0 && output.cost.month > 0
    error_message = "every part has its price: ${jsonencode(output.cost)}"
  }
  assert {
    condition     = length(output.source_access) == 0 && length(output.inventory.all.children.loadgen.hosts) == 0
    error_message = "the old Redis lets the proxies in already, and nobody tests the load"
  }
}

# ansible/test/test_contract.py runs Ansible on that file: what changes here, changes there.
run "contract" {
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-0-1"]
    values = { id = "i-keydb-0-1", private_ip = "10.0.1.21" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-0-2"]
    values = { id = "i-keydb-0-2", private_ip = "10.0.2.21" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-0-3"]
    values = { id = "i-keydb-0-3", private_ip = "10.0.1.22" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-carts"]
    values = { id = "i-proxy-carts", private_ip = "10.0.1.31" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-orders"]
    values = { id = "i-proxy-orders", private_ip = "10.0.1.32" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-carts-b"]
    values = { id = "i-proxy-carts-b", private_ip = "10.0.2.31" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-orders-b"]
    values = { id = "i-proxy-orders-b", private_ip = "10.0.2.32" }
  }
  override_resource {
    target = module.migration.module.observability.module.hosts.aws_instance.this["monitoring"]
    values = { id = "i-monitoring", private_ip = "10.0.1.41" }
  }
  override_resource {
    target = module.migration.module.loadgen.module.hosts[0].aws_instance.this["loadgen-1"]
    values = { id = "i-loadgen-1", private_ip = "10.0.1.51" }
  }
  override_resource {
    target = module.migration.module.loadgen.module.hosts[0].aws_instance.this["loadgen-2"]
    values = { id = "i-loadgen-2", private_ip = "10.0.2.51" }
  }
  variables {
    load_test = true
  }
  assert {
    condition     = jsonencode(output.inventory) == jsonencode(jsondecode(file("tests/inventory.json")))
    error_message = "tests/inventory.json is not what Ansible is given. It would be:\n${jsonencode(output.inventory)}\n"
  }
}
