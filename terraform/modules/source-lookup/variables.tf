variable "sources" {
  type = map(object({
    url                  = string
    instance_id          = optional(string)
    replication_group_id = optional(string)
    version              = optional(string)
    memory_bytes         = optional(number)
    cluster              = optional(bool, false)
  }))
  description = "The old Redis of each shard: its URL in the plan; instance_id of its EC2 host, or replication_group_id of ElastiCache, to look it up by; version (7.0) and memory_bytes (its maxmemory) where you know better; cluster where the URL names nodes of a Redis Cluster."

  validation {
    condition     = alltrue([for source in values(var.sources) : can(regex("^rediss?(\\+sentinel)?://(?:.*@)?(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)(:[0-9]+)?([,/].*)?$", source.url))])
    error_message = "A source's URL is redis://host:port, rediss://host:port or redis+sentinel://host:port,host:port/master; its host cannot come from an environment variable, for Terraform does not see those of the proxy."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : !can(regex("(?i)\\.serverless\\.[a-z0-9-]+\\.cache\\.amazonaws\\.com", source.url))])
    error_message = "A source is a cache of ElastiCache Serverless, which is not supported: it always runs in cluster mode, and refuses CLIENT LIST and CLIENT KILL, which the proxy needs. Restore its data into a node-based cluster with cluster mode disabled first: docs/elasticache.md."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : !can(regex("(?i)(//|@|\\.)clustercfg\\.[a-z0-9.-]*cache\\.amazonaws\\.com", source.url))])
    error_message = "A source is the configuration endpoint of an ElastiCache cluster with cluster mode enabled, which is not supported: move the data to a replication group with cluster mode disabled, and name its primary endpoint: docs/elasticache.md."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : !can(regex("(?i)(//|@)(replica\\.[a-z0-9.-]+|[a-z0-9-]+-ro\\.[a-z0-9.-]+\\.ng\\.[a-z0-9.-]+)\\.cache\\.amazonaws\\.com", source.url))])
    error_message = "A source is a reader endpoint of ElastiCache, whose nodes refuse writes: name the primary endpoint, master.NAME… with TLS, NAME without -ro in the clear."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : source.instance_id == null || source.replication_group_id == null])
    error_message = "A source is an EC2 host or an ElastiCache group: give instance_id or replication_group_id, not both."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : source.instance_id == null ? true : can(regex("^i-[0-9a-f]+$", source.instance_id))])
    error_message = "instance_id is the ID of the EC2 host of the old Redis: write i-0123456789abcdef0."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : source.version == null ? true : can(regex("^([2-8])\\.[0-9]+(\\.[0-9]+)?$", source.version))])
    error_message = "version is what INFO says as redis_version, from 2.8 to 8: write \"7.0\" or \"7.0.15\", in quotes."
  }
  validation {
    condition     = alltrue([for source in values(var.sources) : source.memory_bytes == null ? true : source.memory_bytes > 0])
    error_message = "memory_bytes is what the source may take (CONFIG GET maxmemory, or else its host's memory): a number of bytes above 0."
  }
}
