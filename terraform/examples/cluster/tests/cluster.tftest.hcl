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
override_data {
  target = module.migration.module.keydb.module.hosts.data.aws_subnet.this["subnet-0b"]
  values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1b", map_public_ip_on_launch = false }
}
override_data {
  target = module.migration.module.shadow_proxy.module.hosts.data.aws_subnet.this["subnet-0b"]
  values = { vpc_id = "vpc-0a", availability_zone = "eu-central-1b", map_public_ip_on_launch = false }
}
variables {
  region                    = "eu-central-1"
  vpc_id                    = "vpc-0a"
  subnet_ids                = ["subnet-0a", "subnet-0b"]
  ami_id                    = "ami-0123456789abcdef0"
  client_security_group_ids = ["sg-0a"]
  bucket_name               = "example-reports"
  redis_version             = "6.2"
  redis_maxmemory           = 4294967296
  redis_secret_arn          = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:redis-AbCdEf"
}

run "plans" {
  command = plan

  assert {
    condition     = sort([for shard in values(output.shards) : "${shard.target} ${shard.port}"]) == tolist(["keydb-0 7000", "keydb-1 7001", "keydb-2 7002"])
    error_message = "a shard for each master: ${jsonencode(output.shards)}"
  }
  assert {
    condition     = length(output.inventory.all.children.keydb.hosts) == 6 && length(output.inventory.all.children.shadow_proxy.hosts) == 6
    error_message = "two nodes and two proxies for each"
  }
}

# ansible/test/test_contract_cluster.py runs Ansible on that file: what changes here, changes there.
run "contract" {
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-0-1"]
    values = { id = "i-keydb-0-1", private_ip = "10.0.1.21" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-0-2"]
    values = { id = "i-keydb-0-2", private_ip = "10.0.2.22" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-1-1"]
    values = { id = "i-keydb-1-1", private_ip = "10.0.2.23" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-1-2"]
    values = { id = "i-keydb-1-2", private_ip = "10.0.1.24" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-2-1"]
    values = { id = "i-keydb-2-1", private_ip = "10.0.1.25" }
  }
  override_resource {
    target = module.migration.module.keydb.module.hosts.aws_instance.this["keydb-2-2"]
    values = { id = "i-keydb-2-2", private_ip = "10.0.2.26" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-0"]
    values = { id = "i-proxy-slots-0", private_ip = "10.0.1.31" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-0-b"]
    values = { id = "i-proxy-slots-0-b", private_ip = "10.0.2.32" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-10923"]
    values = { id = "i-proxy-slots-10923", private_ip = "10.0.2.33" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-10923-b"]
    values = { id = "i-proxy-slots-10923-b", private_ip = "10.0.1.34" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-5461"]
    values = { id = "i-proxy-slots-5461", private_ip = "10.0.1.35" }
  }
  override_resource {
    target = module.migration.module.shadow_proxy.module.hosts.aws_instance.this["proxy-slots-5461-b"]
    values = { id = "i-proxy-slots-5461-b", private_ip = "10.0.2.36" }
  }
  override_resource {
    target = module.migration.module.observability.module.hosts.aws_instance.this["monitoring"]
    values = { id = "i-monitoring", private_ip = "10.0.1.41" }
  }
  assert {
    condition     = jsonencode(output.inventory) == jsonencode(jsondecode(file("tests/inventory.json")))
    error_message = "tests/inventory.json is not what Ansible is given. It would be:\n${jsonencode(output.inventory)}\n"
  }
}
