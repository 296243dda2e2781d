# A Redis Cluster of three masters, and a KeyDB cluster of three masters with a replica each: two proxies for each master.

provider "aws" {
  region = var.region
}

module "migration" {
  source = "../../environments/aws"

  plan_file                 = "${path.module}/migration.yaml"
  vpc_id                    = var.vpc_id
  subnet_ids                = var.subnet_ids
  ami_id                    = var.ami_id
  zone                      = { name = "cache.internal" }
  client_security_group_ids = var.client_security_group_ids
  bucket_name               = var.bucket_name
  source_secrets            = { source-proxy = var.redis_secret_arn }

  # Of each master of the Redis Cluster: redis_version, and CONFIG GET maxmemory. ranges: where its nodes are.
  sources = { cluster = { version = var.redis_version, memory_bytes = var.redis_maxmemory, ranges = ["10.0.0.0/24"] } }

  # The same slots on both sides: a shard for each master.
  cluster = {
    source              = ["0-5460", "5461-10922", "10923-16383"]
    target              = { keydb-0 = "0-5460", keydb-1 = "5461-10922", keydb-2 = "10923-16383" }
    clients_reach_keydb = var.leave_the_proxies
  }

  # The load balancer has the name and the ports that the plan announces.
  names_via = "nlb"

  access = { via = "ssh", key_name = "platform", from = ["10.20.0.0/16"] }
}
