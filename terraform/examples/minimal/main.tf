# The least that a move needs: one Redis on an EC2 host, everything else by default.

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

  # What the old Redis is, for the guardrails: redis_version of INFO, and CONFIG GET maxmemory.
  sources = { cache-0 = { version = var.redis_version, memory_bytes = var.redis_maxmemory } }

  # Applications ask for checkout.cache.internal. It leads to the old Redis until this says proxy, and after complete, target.
  names = { checkout = { shard = "cache-0", to = "source" } }
}
