# KeyDB nodes: each target has some, dealt out over the subnets, so that no two of a target are in one zone before they must.

locals {
  # The subnet of a target's first node, by its number; the others follow it. A target whose nodes are there goes on from these, so
  # that another target moves none.
  zones  = length(var.base.subnet_ids)
  places = { for n in range(var.nodes_per_target) : n => { for target in var.targets : target => lookup(module.hosts.standing, "${target}-${n + 1}", "") } }
  first = {
    for t, target in sort(tolist(var.targets)) : target => concat(
      [for n in range(var.nodes_per_target) : index(var.base.subnet_ids, local.places[n][target]) + n * (local.zones - 1) if contains(var.base.subnet_ids, local.places[n][target])],
      [t],
    )[0]
  }
  nodes = merge([
    for target in var.targets : {
      for n in range(var.nodes_per_target) : "${target}-${n + 1}" => {
        target    = target
        role      = var.active_active ? "active" : n == 0 ? "primary" : "replica"
        subnet_id = var.base.subnet_ids[(local.first[target] + n) % local.zones]
      }
    }
  ]...)
  # Only nodes of one target need racks of their own.
  hosts = { for name, node in local.nodes : name => { subnet_id = node.subnet_id, group = var.spread ? node.target : null } }

  # The rest is for forks that write copies of pages, buffers of replicas, and the kernel.
  maxmemory_bytes = floor(module.hosts.memory_bytes * var.maxmemory_percent / 100)
  short_of_memory = [for target, bytes in var.required_bytes : target if bytes > local.maxmemory_bytes]
}

module "hosts" {
  source = "../hosts"

  name               = "${var.name}-keydb"
  hosts              = local.hosts
  instance_type      = var.instance_type
  data               = var.data
  secret_arns        = var.secret_arns
  bucket_prefix_arns = var.bucket_prefix_arns

  vpc_id          = var.base.vpc_id
  subnet_ids      = var.base.subnet_ids
  ami_id          = var.base.ami_id
  replace         = { for host, number in var.base.replace : host => number if contains(keys(local.hosts), host) }
  key_name        = var.base.key_name
  session_manager = var.base.session_manager
  replaceable     = var.base.replaceable
  protect         = var.base.protect
  kms_key_arn     = var.base.kms_key_arn
  tags            = var.base.tags
}
