# What must not be built. The zones and the memory of KeyDB's nodes are looked at in modules/keydb, public subnets in
# modules/hosts, names that would split a shard in modules/endpoints.

locals {
  # The rule of shadow-proxy/src/plan/counters.ts: one writer, or a layout in which no two nodes write one key.
  unsafe_counters = [
    for workload in local.workloads : workload.name
    if local.active_active
    && contains(["counter", "leaderboard"], try(workload.class, "general"))
    && try(workload.writer, null) == null
    && !(try(workload.class, "") == "counter" && contains(["library", "per-region"], try(workload.counterLayout, "plain")))
  ]

  beyond_zone   = [for name, shard in local.shards : "${name}: ${shard.target.host}" if !endswith(shard.target.host, ".${var.zone.name}") || length(split(".", trimsuffix(shard.target.host, ".${var.zone.name}"))) != 1]
  target_ports  = distinct([for shard in values(local.shards) : coalesce(shard.target.port, "6379")])
  loopback_only = [for name, shard in local.shards : name if can(regex("^(localhost|127\\.|\\[::1\\])", shard.listen.host)) || can(regex("^(localhost|127\\.|\\[::1\\])", shard.admin.host))]
  busy_ports    = distinct(concat([for target in values(local.targets) : target.writer_port if !local.clustered || length(local.cluster_targets) == 1], flatten([for shard in values(local.shards) : [tonumber(coalesce(shard.listen.port, "6379")), tonumber(shard.admin.port)]])))

  private = "^(10\\.|192\\.168\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|100\\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\\.)"
  public  = [for name, source in module.source.sources : "${name}: ${source.host}" if can(cidrhost("${source.host}/32", 0)) && !can(regex(local.private, source.host))]

  source_names = local.clustered ? ["cluster"] : keys(local.shards)

  # A copy of the list of Ansible's preflight, so that this folder needs no other. An image is refused by its name only where that is a
  # vendor's.
  systems           = yamldecode(file("${path.module}/systems.yml"))
  image_name        = coalesce(data.aws_ami.this.name, "-")
  image_platform    = coalesce(data.aws_ami.this.platform_details, "-")
  supported_image   = anytrue([for system in local.systems.supported_systems : can(regex("^${system.image}", local.image_name))])
  unsupported_image = (can(regex(local.systems.known_images, local.image_name)) && !local.supported_image) || can(regex(local.systems.known_platforms, local.image_platform))

  # Redis before 7.0 writes RDB 9 at most, which KeyDB 6.3.4 reads.
  not_loadable = [for name, source in module.source.sources : "${name} (Redis ${source.version}, RDB ${source.rdb_version})" if try(source.rdb_version > 9, false)]
  unknown      = [for name, source in module.source.sources : name if source.memory_bytes == null || source.version == null]
}

# The same one as in modules/hosts, which refuses another architecture than the instance type's.
data "aws_ami" "this" {
  include_deprecated = true

  filter {
    name   = "image-id"
    values = [var.ami_id]
  }
}

resource "terraform_data" "image" {
  lifecycle {
    precondition {
      condition     = !local.unsupported_image
      error_message = "AMI ${var.ami_id} is ${local.image_name} (${local.image_platform}); allowed: ${join(", ", local.systems.supported_systems[*].name)}. Give an AMI of one of these."
    }
  }
}

resource "terraform_data" "plan" {
  lifecycle {
    precondition {
      condition     = length(local.beyond_zone) == 0
      error_message = "The plan's targets are made here, and named in ${var.zone.name}, but there is ${join(", ", local.beyond_zone)}: write target: redis://keydb-0.${var.zone.name}:6379."
    }
    precondition {
      condition     = length(local.target_ports) <= 1
      error_message = "The plan's targets have ports ${join(", ", local.target_ports)}: give all the same one, that of HAProxy on every KeyDB host."
    }
    precondition {
      condition     = length(local.loopback_only) == 0
      error_message = "The proxy of ${join(", ", local.loopback_only)} would listen on loopback only, where neither clients nor monitoring reach it: write listen: redis://0.0.0.0:6379, and admin: { listen: \"0.0.0.0:9400\", tokenFile: … }."
    }
    precondition {
      condition     = length(setintersection(local.busy_ports, values(var.ports))) == 0
      error_message = "Port ${join(", ", setintersection(local.busy_ports, values(var.ports)))} is taken twice on a host: by the plan (listen, admin, target) and by ports. Change one of them."
    }
  }
}

resource "terraform_data" "sources" {
  lifecycle {
    precondition {
      condition     = length(setsubtract(keys(var.sources), local.source_names)) == 0
      error_message = "sources has ${join(", ", setsubtract(keys(var.sources), local.source_names))}, and the plan has no such shard: its keys are ${join(", ", local.source_names)}."
    }
    precondition {
      condition     = length(local.not_written) == 0
      error_message = "The plan names files that Ansible does not write (${join("; ", local.not_written)}). It writes ${join(", ", keys(local.written))}; the last one from source_secrets, whose source-proxy is the ARN of a secret."
    }
  }
}

resource "terraform_data" "counters" {
  lifecycle {
    precondition {
      condition     = length(local.unsafe_counters) == 0
      error_message = "Workload ${join(", ", local.unsafe_counters)} counts, and topology.mode is active-active: two nodes that count at once lose increments in a full resync. Give it one writer (writer: a region), or a class counter a conflict-free layout (counterLayout: library or per-region), or use mode primary-replica."
    }
  }
}

resource "terraform_data" "addresses" {
  lifecycle {
    precondition {
      condition     = length(local.public) == 0
      error_message = "The old Redis would be reached at a public address (${join(", ", local.public)}), over the internet: write its private address in the plan."
    }
  }
}

resource "terraform_data" "host_names" {
  lifecycle {
    precondition {
      condition     = length(local.no_hosts) == 0
      error_message = "There is no host ${join(", ", local.no_hosts)}: replaceable and replace take ${join(", ", keys(local.hosts))}."
    }
  }
}

locals {
  # A host that is to go is in AWS until then, and in the plan no more.
  standing = concat(keys(local.hosts), keys(module.keydb.standing), keys(module.shadow_proxy.standing), keys(module.observability.standing))
  no_hosts = concat([for host in var.replaceable : host if !contains(local.standing, host)], [for host in keys(var.replace) : host if !contains(keys(local.hosts), host)])
}

check "source_loads_by_itself" {
  assert {
    condition     = length(local.not_loadable) == 0
    error_message = "KeyDB reads RDB 9 at most, and not what ${join(", ", local.not_loadable)} writes: REPLICAOF, RESTORE and a copied dump.rdb fail. Data gets there through the proxy only: shadow-compare backfill."
  }
}

check "source_is_known" {
  assert {
    condition     = length(local.unknown) == 0
    error_message = "Nobody said how much memory the source of ${join(", ", local.unknown)} may take, or its version, so it was not checked that the target has room, or can load its files: give instance_id, replication_group_id, or version and memory_bytes in sources."
  }
}
