# KeyDB nodes: each target has some, dealt out over the subnets, so that no two of a target are in one zone before they must.

locals {
  nodes = merge([
    for t, target in sort(tolist(var.targets)) : {
      for n in range(var.nodes_per_target) : "${target}-${n + 1}" => {
        target    = target
        role      = var.active_active ? "active" : n == 0 ? "primary" : "replica"
        subnet_id = var.base.subnet_ids[(t + n) % length(var.base.subnet_ids)]
      }
    }
  ]...)
  hosts = { for name, node in local.nodes : name => { subnet_id = node.subnet_id } }

  # The rest is for forks that write copies of pages, buffers of replicas, and the kernel.
  maxmemory_bytes = floor(module.hosts.memory_bytes * var.maxmemory_percent / 100)
  short_of_memory = [for target, bytes in var.required_bytes : target if bytes > local.maxmemory_bytes]
  fullest_subnet  = max([for subnet in var.base.subnet_ids : length([for host in values(local.hosts) : host if host.subnet_id == subnet])]...)
}

module "hosts" {
  source = "../hosts"

  name               = "${var.name}-keydb"
  hosts              = local.hosts
  instance_type      = var.instance_type
  spread             = var.spread
  data               = var.data
  secret_arns        = var.secret_arns
  bucket_prefix_arns = var.bucket_prefix_arns

  vpc_id          = var.base.vpc_id
  ami_id          = var.base.ami_id
  replace         = { for host, number in var.base.replace : host => number if contains(keys(local.hosts), host) }
  key_name        = var.base.key_name
  session_manager = var.base.session_manager
  replaceable     = var.base.replaceable
  protect         = var.base.protect
  kms_key_arn     = var.base.kms_key_arn
  tags            = var.base.tags
}
