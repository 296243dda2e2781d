output "sources" {
  description = "By shard: { host, port, tls, kind, version, rdb_version, memory_bytes }; the last three null where nobody said."
  value = {
    for shard, source in var.sources : shard => {
      host         = local.hosts[shard]
      port         = tonumber(coalesce(local.addresses[shard].port, local.urls[shard].sentinel == null ? "6379" : "26379"))
      tls          = local.urls[shard].scheme == "rediss"
      kind         = source.cluster ? "cluster" : local.urls[shard].sentinel != null ? "sentinel" : source.replication_group_id != null ? "elasticache" : "redis"
      version      = local.versions[shard]
      rdb_version  = local.rdb_versions[shard]
      memory_bytes = source.memory_bytes != null ? source.memory_bytes : try(data.aws_ec2_instance_type.this[local.instance_types[shard]].memory_size * 1024 * 1024, null)
    }
  }
}
