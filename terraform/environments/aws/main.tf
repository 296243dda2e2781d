# What a production move needs beside the old Redis, from the plan file and a few variables.

locals {
  tags = merge({ Migration = local.name, ManagedBy = "terraform" }, var.tags)

  base = {
    vpc_id          = var.vpc_id
    subnet_ids      = var.subnet_ids
    ami_id          = var.ami_id
    kms_key_arn     = aws_kms_key.this.arn
    replace         = var.replace
    key_name        = var.access.key_name
    session_manager = var.access.via == "session-manager"
    replaceable     = var.replaceable
    protect         = var.protect
    tags            = local.tags
  }
}

module "source" {
  source = "../../modules/source-lookup"

  sources = { for name, shard in local.shards : name => merge(try(var.sources[local.clustered ? "cluster" : name], {}), { url = shard.source, cluster = local.clustered }) }
}

module "keydb" {
  source = "../../modules/keydb"

  name               = local.name
  base               = local.base
  targets            = keys(local.targets)
  nodes_per_target   = var.keydb.nodes_per_target
  active_active      = local.active_active
  instance_type      = var.keydb.instance_type
  maxmemory_percent  = var.keydb.maxmemory_percent
  spread             = var.keydb.spread
  data               = var.keydb.data
  allow_single_zone  = var.allow_single_zone
  required_bytes     = { for target, bytes in local.required_bytes : target => bytes if bytes != null }
  secret_arns        = local.readable.keydb
  bucket_prefix_arns = [module.storage.prefix_arns.backups]
}

module "shadow_proxy" {
  source = "../../modules/shadow-proxy"

  name                          = local.name
  base                          = local.base
  shards                        = { for name, shard in local.shards : name => { listen_port = tonumber(coalesce(shard.listen.port, "6379")), admin_port = tonumber(shard.admin.port) } }
  per_shard                     = coalesce(var.shadow_proxy.per_shard, var.names_via == "nlb" ? 2 : 1)
  allow_single_zone             = var.allow_single_zone
  instance_type                 = var.shadow_proxy.instance_type
  data                          = var.shadow_proxy.data
  additional_security_group_ids = var.source_client_security_group_ids
  alarm_topic_arns              = [module.observability.topic_arn]
  secret_arns                   = local.readable.shadow_proxy
  secret_kms_key_arns           = var.source_secret_kms_key_arns
  bucket_prefix_arns            = [module.storage.prefix_arns.reports]
}

module "observability" {
  source = "../../modules/observability"

  name                          = local.name
  base                          = local.base
  instance_type                 = var.monitoring.instance_type
  data                          = var.monitoring.data
  emails                        = var.monitoring.emails
  additional_security_group_ids = var.source_client_security_group_ids
  secret_arns                   = local.readable.monitoring
  secret_kms_key_arns           = var.source_secret_kms_key_arns
  bucket_prefix_arns            = [module.storage.prefix_arns.reports]

  watched = merge(
    { for name, host in module.keydb.hosts : name => { id = host.id, cpu_percent = 80 } },
    # One thread, and a little beside it: 80 % of one core.
    { for name, host in module.shadow_proxy.hosts : name => { id = host.id, cpu_percent = 80 / host.cpus } },
  )
}

module "loadgen" {
  source = "../../modules/loadgen"

  name               = local.name
  base               = local.base
  hosts              = var.loadgen.hosts
  instance_type      = var.loadgen.instance_type
  secret_arns        = local.readable.loadgen
  bucket_prefix_arns = [module.storage.prefix_arns.reports]
}

module "endpoints" {
  source = "../../modules/endpoints"

  name             = local.name
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  zone             = var.zone
  via              = var.names_via
  protect          = var.protect
  names            = local.names
  alarm_topic_arns = [module.observability.topic_arn]
  tags             = local.tags

  addresses = merge(
    { for name, host in local.hosts : name => [host.address] },
    { for name, target in local.targets : name => [for host in values(module.keydb.hosts) : host.address if host.target == name] },
  )
  destinations = {
    for name, shard in local.shards : name => {
      source = module.source.sources[name]
      proxy = {
        addresses  = [for host in values(module.shadow_proxy.hosts) : host.address if host.shard == name]
        port       = tonumber(coalesce(shard.listen.port, "6379"))
        admin_port = tonumber(shard.admin.port)
      }
      target = {
        addresses = local.clustered ? [] : [for host in values(module.keydb.hosts) : host.address if host.target == local.target_of[name]]
        port      = local.targets[local.target_of[name]].writer_port
      }
    }
  }
}

module "storage" {
  source = "../../modules/storage"

  name              = var.bucket_name
  transfer_name     = var.access.via == "session-manager" ? coalesce(var.transfer_bucket_name, "${var.bucket_name}-transfer") : null
  kms_key_arn       = aws_kms_key.this.arn
  keep_backups_days = var.keep_backups_days
  protect           = var.protect
  tags              = local.tags
}

locals {
  hosts = merge(module.keydb.hosts, module.shadow_proxy.hosts, module.observability.hosts, module.loadgen.hosts)

  # What the sources of each target may take together; null where nobody said of one of them.
  required_bytes = {
    for name, target in local.targets : name => try(
      local.clustered ? length(local.taken_by[name]) * var.sources.cluster.memory_bytes : sum([for shard in target.shards : module.source.sources[shard].memory_bytes]),
      null,
    )
  }
}
