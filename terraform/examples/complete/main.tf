# Everything that can be set: an ElastiCache group and a Redis on EC2, whose data share one target; a load balancer for the
# names; ssh; load-test hosts; a password in rotation; prices.

provider "aws" {
  region = var.region
}

module "migration" {
  source = "../../environments/aws"

  plan_file                        = "${path.module}/migration.yaml"
  vpc_id                           = var.vpc_id
  subnet_ids                       = var.subnet_ids
  ami_id                           = var.ami_id
  zone                             = { name = "cache.internal", id = var.zone_id }
  client_security_group_ids        = var.client_security_group_ids
  source_client_security_group_ids = var.source_client_security_group_ids
  bucket_name                      = var.bucket_name
  keep_backups_days                = 90
  tags                             = { Team = "platform" }

  sources = {
    orders = { replication_group_id = "orders" }
    carts  = { instance_id = var.redis_instance_id, version = "6.2", memory_bytes = 4 * 1024 * 1024 * 1024 }
  }
  source_secrets = { source-proxy = var.redis_secret_arn }

  keydb        = { instance_type = "r7i.2xlarge", nodes_per_target = 3, data = { gib = 256, iops = 6000, throughput = 250 } }
  shadow_proxy = { instance_type = "c7i.xlarge" }
  monitoring   = { instance_type = "t3.large", emails = ["oncall@example.com"] }
  loadgen      = { hosts = var.load_test ? 2 : 0 }

  # One name for each group of workloads that moves as one: to is source, proxy or target.
  names_via = "nlb"
  names = {
    orders = { shard = "orders", to = "proxy", port = 6379 }
    carts  = { shard = "carts", to = "proxy", port = 6380 }
  }

  access = { via = "ssh", key_name = "platform", from = ["10.20.0.0/16"] }

  # The second generation of the applications' password is accepted, and the first still in use.
  passwords = { rotation = { keydb-app = { use = "1", accept = ["1", "2"] } } }

  prices = {
    currency      = "USD"
    instance_hour = { "r7i.2xlarge" = 0.43, "c7i.xlarge" = 0.15, "t3.large" = 0.07 }
    gib_month     = 0.08
    iops_month    = 0.005
    mibs_month    = 0.04
    load_balancer = 0.0225
    secret_month  = 0.4
    alarm_month   = 0.1
    kms_key_month = 1
  }
}
