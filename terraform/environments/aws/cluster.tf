# A plan with `cluster`: its shards follow from the slots of the masters on both sides, which Terraform does not see. So they are given in var.cluster,
# and Ansible compares them with the live source. Each shard has one master of the source, one of the target, and the slots that they share.

locals {
  clustered     = can(local.plan.cluster.source)
  keydb_cluster = length(var.cluster.target) > 0
  hash_slots    = 16384

  cluster_source  = try(local.plan.cluster.source.url, local.plan.cluster.source, "redis://127.0.0.1:6379")
  cluster_targets = split(",", regex("^rediss?://(?:.*@)?([^@/]+)(?:/.*)?$", try(local.plan.cluster.target.url, local.plan.cluster.target, "redis://127.0.0.1:6379"))[0])
  # A cluster may move to one KeyDB, behind HAProxy as ever.
  cluster_target = regex(local.url, "redis://${local.cluster_targets[0]}")
  cluster_listen = regex(local.url, try(local.plan.cluster.listen, "redis://127.0.0.1:6379"))
  # Its own counts up, as the ports for clients do; the plan's is that of every shard.
  cluster_admin = regex(local.listen, try(local.plan.cluster.admin.listen, local.plan.admin.listen, "127.0.0.1:9400"))
  announced     = try(regex("^(?P<name>[a-z0-9-]+)[.](?P<zone>[^:]+):(?P<port>[0-9]+)$", local.plan.cluster.announce), { name = "", zone = "", port = "0" })

  # "0-99,200" => [{ first = 0, last = 99 }, { first = 200, last = 200 }]
  source_masters = [for slots in var.cluster.source : [for range in split(",", slots) : { first = tonumber(split("-", range)[0]), last = tonumber(reverse(split("-", range))[0]) }]]
  given_masters  = { for name, slots in var.cluster.target : name => [for range in compact(split(",", slots)) : { first = tonumber(split("-", range)[0]), last = tonumber(reverse(split("-", range))[0]) }] }
  target_masters = !local.clustered ? {} : local.keydb_cluster ? local.given_masters : { (split(".", local.cluster_target.host)[0]) = [{ first = 0, last = local.hash_slots - 1 }] }

  cuts = [for cut in sort([for cut in distinct(concat([0], try(local.plan.cluster.cuts, []))) : format("%05d", cut)]) : tonumber(cut)]
  ends = concat([for cut in slice(local.cuts, 1, length(local.cuts)) : cut - 1], [local.hash_slots - 1])
  shares = flatten([
    for s, source in local.source_masters : [
      for name, target in local.target_masters : [
        for i, cut in local.cuts : {
          source = s
          target = name
          starts = flatten([for a in source : [for b in target : max(a.first, b.first, cut) if max(a.first, b.first, cut) <= min(a.last, b.last, local.ends[i])]])
        }
      ]
    ]
  ])
  # Several at one slot: only where slots are given twice, which is refused.
  shards_at      = { for share in local.shares : format("%05d", min(share.starts...)) => { source = share.source, target = share.target }... if length(share.starts) > 0 }
  shards_by_slot = { for i, at in sort(keys(local.shards_at)) : "slots-${tonumber(at)}" => merge(local.shards_at[at][0], { number = i }) }

  # Masters of the source that one target takes whole, or a part of.
  taken_by = { for name in keys(local.target_masters) : name => distinct([for shard in values(local.shards_by_slot) : shard.source if shard.target == name]) }
  divided  = [for s, slots in var.cluster.source : slots if length([for name, sources in local.taken_by : name if contains(sources, s)]) > 1]

  # In the order of their slots: each begins where the one before ends, and the last one ends where the slots do.
  source_order = sort(flatten([for master in local.source_masters : [for range in master : "${format("%05d", range.first)}-${format("%05d", range.last)}"]]))
  target_order = sort(flatten([for master in values(local.given_masters) : [for range in master : "${format("%05d", range.first)}-${format("%05d", range.last)}"]]))
  whole = {
    for side, order in { source = local.source_order, target = local.target_order } : side => (
      join(" ", concat([for range in order : split("-", range)[0]], ["16384"])) == join(" ", concat(["00000"], [for range in order : format("%05d", tonumber(split("-", range)[1]) + 1)]))
    )
  }

  # One load balancer, a port for each shard: clients find them all by what CLUSTER replies name.
  cluster_names = {
    for name, shard in local.shards_by_slot : shard.number == 0 ? local.announced.name : "${local.announced.name}-${name}" => {
      shard = name
      to    = "proxy"
      port  = tonumber(local.announced.port) + shard.number
    } if var.names_via == "nlb"
  }
  names = local.clustered ? local.cluster_names : { for name, choice in var.names : name => choice }

  nodes_or_targets = concat(keys(module.keydb.hosts), keys(local.target_masters))
  not_made_here    = [for host in local.cluster_targets : host if !contains([for name in local.nodes_or_targets : "${name}.${var.zone.name}:${var.ports.keydb}"], host)]
}

resource "terraform_data" "cluster" {
  lifecycle {
    precondition {
      condition     = local.clustered == (length(var.cluster.source) > 0)
      error_message = local.clustered ? "The plan has cluster, and cluster.source is empty: give the slots of each master of the Redis Cluster, as redis-cli cluster nodes shows them: cluster = { source = [\"0-5460\", …] }." : "cluster.source has slots, and the plan has no cluster: leave the variable cluster out, or give the plan a cluster."
    }
    precondition {
      condition     = !local.clustered || length(var.cluster.source) == 0 || local.whole.source
      error_message = "cluster.source (${join("; ", var.cluster.source)}) must have each slot from 0 to ${local.hash_slots - 1} once: copy the ranges of redis-cli cluster nodes, those of one master joined by commas."
    }
    precondition {
      condition     = !local.keydb_cluster || local.whole.target
      error_message = "cluster.target (${join("; ", [for name, slots in var.cluster.target : "${name}: ${slots}"])}) must have each slot from 0 to ${local.hash_slots - 1} once."
    }
    precondition {
      condition     = !local.keydb_cluster || var.cluster.unaligned || length(local.divided) == 0
      error_message = "Several masters of cluster.target share the slots of one master of the source (${join("; ", local.divided)}): that takes ${length(local.shards_by_slot)} shards for ${length(var.cluster.source)} masters. Give each target whole masters of the source, or set cluster.unaligned = true."
    }
    precondition {
      condition     = !local.keydb_cluster || length([for slots in values(var.cluster.target) : slots if slots != ""]) >= 3
      error_message = "cluster.target has ${length([for slots in values(var.cluster.target) : slots if slots != ""])} masters with slots: with less than 3 no majority is left to promote a replica. Give 3 or more, or name one KeyDB as the plan's target and leave cluster.target empty."
    }
    precondition {
      condition     = !local.keydb_cluster || !local.active_active
      error_message = "cluster.target makes a KeyDB cluster, and topology.mode of the plan is active-active: in a cluster one node takes the writes of a slot. Use mode primary-replica."
    }
    precondition {
      condition     = !local.keydb_cluster || length(local.not_made_here) == 0
      error_message = "The plan's cluster.target names ${join(", ", local.not_made_here)}, which is not made here: name nodes, such as ${local.nodes_or_targets[0]}.${var.zone.name}:${var.ports.keydb}; the port is that of ports.keydb."
    }
    precondition {
      condition     = !local.clustered || local.keydb_cluster || length(local.cluster_targets) == 1
      error_message = "The plan's cluster.target names several nodes (${join(", ", local.cluster_targets)}), and cluster.target is empty: give the slots of each master, cluster = { target = { keydb-0 = \"0-5460\", … } }."
    }
    precondition {
      condition     = !local.clustered || (var.names_via == "nlb" && length(var.names) == 0)
      error_message = "Clients of a cluster connect to each shard's proxy by the name in the plan's cluster.announce: set names_via = \"nlb\", and leave names out. The load balancer has a port for each shard."
    }
    precondition {
      condition     = !local.clustered || try(local.plan.cluster.replicas, null) == null
      error_message = "cluster.replicas is in the plan, and the load balancer has no port for it: leave it out. Reads of all clients go to the authority."
    }
    precondition {
      condition     = !local.clustered || local.announced.zone == var.zone.name
      error_message = "cluster.announce of the plan is ${try(local.plan.cluster.announce, "not set")}: write a name of ${var.zone.name} with a port, such as cache.${var.zone.name}:7000. The load balancer gets that name, and the ports count up from there."
    }
  }
}
