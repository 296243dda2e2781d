# The plan file: what Terraform takes from it. Its shape, and the rules between its parts, are checked in full by
# `shadow-proxy --plan migration.yaml --check`.

locals {
  plan = yamldecode(file(var.plan_file))
  name = local.plan.name

  shards = merge(
    {
      for shard in try(local.plan.shards, []) : shard.name => {
        source = try(shard.source.url, shard.source)
        target = regex(local.url, try(shard.target.url, shard.target))
        listen = regex(local.url, shard.listen)
        admin  = regex(local.listen, try(shard.admin.listen, local.plan.admin.listen, "127.0.0.1:9400"))
      }
    },
    {
      for name, shard in local.shards_by_slot : name => {
        source = local.cluster_source
        target = local.keydb_cluster ? { scheme = "redis", host = "${shard.target}.${var.zone.name}", port = tostring(var.ports.keydb) } : local.cluster_target
        listen = merge(local.cluster_listen, { port = tostring(tonumber(coalesce(local.cluster_listen.port, "6379")) + shard.number) })
        admin  = merge(local.cluster_admin, { port = tostring(tonumber(local.cluster_admin.port) + (can(local.plan.cluster.admin.listen) ? shard.number : 0)) })
      }
    },
  )
  url    = "^(?P<scheme>rediss?)://(?:.*@)?(?P<host>[^@/:,]+)(?::(?P<port>[0-9]+))?(?:/.*)?$"
  listen = "^(?P<host>.+):(?P<port>[0-9]+)$"

  # Files with passwords that the plan names, by what they are for; and what Ansible writes.
  secret_files = merge(
    merge([for shard in try(local.plan.shards, []) : { for side in ["source", "target"] : "passwordFile of the ${side} of ${shard.name}" => try(shard[side].passwordFile, null) }]...),
    { for side in ["source", "target"] : "passwordFile of the ${side} of the cluster" => try(local.plan.cluster[side].passwordFile, null) },
    { for shard in try(local.plan.shards, []) : "tokenFile of ${shard.name}" => try(shard.admin.tokenFile, null) },
    { "tokenFile of the cluster" = try(local.plan.cluster.admin.tokenFile, null) },
    { "tokenFile of the plan" = try(local.plan.admin.tokenFile, null) },
  )
  written = {
    "/etc/shadow-proxy/secrets/admin-token"     = true
    "/etc/shadow-proxy/secrets/target-password" = true
    "/etc/shadow-proxy/secrets/source-password" = contains(keys(var.source_secrets), "source-proxy")
  }
  not_written = [for what, file in local.secret_files : "${what}: ${file}" if file != null && !lookup(local.written, coalesce(file, "-"), false)]

  # The first label of the host in the plan's target URL is the target's name: keydb-0.cache.internal => keydb-0.
  target_of = { for name, shard in local.shards : name => split(".", shard.target.host)[0] }
  targets = merge(local.idle_targets, {
    for target in distinct(values(local.target_of)) : target => {
      host        = distinct([for name, shard in local.shards : shard.target.host if local.target_of[name] == target])[0]
      writer_port = distinct([for name, shard in local.shards : tonumber(coalesce(shard.target.port, "6379")) if local.target_of[name] == target])[0]
      shards      = sort([for name in keys(local.shards) : name if local.target_of[name] == target])
    }
  })
  # Masters of a KeyDB cluster that have no slots yet.
  idle_targets = { for target in keys(local.target_masters) : target => { host = "${target}.${var.zone.name}", writer_port = var.ports.keydb, shards = [] } }
  writer_ports = distinct(values(local.targets)[*].writer_port)

  active_active = try(local.plan.topology.mode, "primary-replica") == "active-active"
  workloads     = concat(try(local.plan.workloads, []), [merge(try(local.plan.default, {}), { name = "default" })])
  pinned        = local.active_active && anytrue([for workload in local.workloads : try(workload.writer, null) != null])
}
