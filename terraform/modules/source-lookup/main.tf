# What is known of the old Redis: from its URL in the plan, and from AWS by data sources only. Nothing here can change it.

locals {
  urls = {
    for shard, source in var.sources : shard => regex("^(?P<scheme>rediss?)(?P<sentinel>\\+sentinel)?://(?:.*@)?(?P<address>[^@/,]+)", source.url)
  }
  addresses = {
    for shard, url in local.urls : shard => regex("^(?:\\[(?P<v6>[^]]+)\\]|(?P<host>[^:]+))(?::(?P<port>[0-9]+))?$", url.address)
  }
  hosts = { for shard, address in local.addresses : shard => coalesce(address.v6, address.host) }

  elasticache = { for shard, source in var.sources : shard => source.replication_group_id if source.replication_group_id != null }
  instances   = { for shard, source in var.sources : shard => source.instance_id if source.instance_id != null }

  # A cache node has the memory of the instance type that it is named after, and somewhat less of it is for data.
  instance_types = merge(
    { for shard, instance in data.aws_instance.this : shard => instance.instance_type },
    { for shard, group in data.aws_elasticache_replication_group.this : shard => trimprefix(group.node_type, "cache.") },
  )

  versions = {
    for shard, source in var.sources : shard => try(coalesce(source.version, try(data.aws_elasticache_cluster.this[shard].engine_version, null)), null)
  }
  engines = { for shard in keys(var.sources) : shard => try(data.aws_elasticache_cluster.this[shard].engine, "redis") }

  # 7.2 => 702
  numbers = {
    for shard, version in local.versions : shard => try(100 * tonumber(regex("^[0-9]+", version)) + tonumber(regex("^[0-9]+\\.([0-9]+)", version)[0]), null)
  }
  rdb_versions = {
    for shard, number in local.numbers : shard => (
      number == null ? null :
      local.engines[shard] == "valkey" ? 11 :
      number < 302 ? 6 : number < 400 ? 7 : number < 500 ? 8 : number < 700 ? 9 : number < 702 ? 10 : number < 704 ? 11 : 12
    )
  }
}

data "aws_instance" "this" {
  for_each = local.instances

  instance_id = each.value

  lifecycle {
    postcondition {
      condition     = !can(cidrhost("${local.hosts[each.key]}/32", 0)) || contains(concat([self.private_ip], tolist(self.secondary_private_ips)), local.hosts[each.key])
      error_message = "Instance ${each.value} has address ${self.private_ip}, and the plan's source of shard ${each.key} is ${local.hosts[each.key]}: correct one of them."
    }
  }
}

data "aws_elasticache_replication_group" "this" {
  for_each = local.elasticache

  replication_group_id = each.value

  lifecycle {
    postcondition {
      condition     = self.cluster_mode != "enabled"
      error_message = "Replication group ${each.value} has cluster mode on, which the proxy does not speak: it moves groups with cluster mode off."
    }
    postcondition {
      condition     = self.cluster_mode == "enabled" || self.primary_endpoint_address == local.hosts[each.key]
      error_message = "The primary of ${each.value} is ${self.primary_endpoint_address}, and the plan's source of shard ${each.key} is ${local.hosts[each.key]}: write ${self.auth_token_enabled ? "rediss" : "redis"}://${self.primary_endpoint_address}:${self.port} in the plan."
    }
  }
}

data "aws_elasticache_cluster" "this" {
  for_each = data.aws_elasticache_replication_group.this

  cluster_id = sort(tolist(each.value.member_clusters))[0]

  lifecycle {
    postcondition {
      condition     = contains(["redis", "valkey"], self.engine)
      error_message = "Cluster ${self.cluster_id} is ${self.engine}: the source is a Redis or a Valkey."
    }
  }
}

data "aws_ec2_instance_type" "this" {
  for_each = toset(values(local.instance_types))

  instance_type = each.value
}
