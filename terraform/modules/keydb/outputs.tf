output "hosts" {
  description = "The nodes by name, as ../hosts gives them, with target, role and maxmemory_bytes."
  value = {
    for name, host in module.hosts.hosts : name => merge(host, {
      target          = local.nodes[name].target
      role            = local.nodes[name].role
      maxmemory_bytes = floor(host.memory_bytes * var.maxmemory_percent / 100)
    })
  }

  precondition {
    condition     = length(module.hosts.zones) >= 2 || var.allow_single_zone
    error_message = "All KeyDB nodes would be in ${join(", ", module.hosts.zones)}, and be lost with it: give subnets of two or more availability zones, or set allow_single_zone = true for a rehearsal."
  }
  precondition {
    condition     = length(local.short_of_memory) == 0
    error_message = "A node of ${var.instance_type} has ${floor(local.maxmemory_bytes / 1048576)} MiB for data (maxmemory_percent = ${var.maxmemory_percent}), and the sources of ${join(", ", [for target in local.short_of_memory : "${target} may take ${ceil(var.required_bytes[target] / 1048576)} MiB"])}: choose a larger instance_type, or give those shards a target of their own."
  }
}

output "zones" {
  description = "Availability zones that have a node."
  value       = module.hosts.zones
}

output "maxmemory_bytes" {
  description = "What KeyDB may take of one host."
  value       = local.maxmemory_bytes
}

output "security_group_id" {
  description = "Security group of the nodes."
  value       = module.hosts.security_group_id
}

output "billed" {
  description = "What costs."
  value       = module.hosts.billed
}

output "standing" {
  description = "Subnets of the nodes that AWS has, by name; also of nodes that are to go."
  value       = module.hosts.standing
}
