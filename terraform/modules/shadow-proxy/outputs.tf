output "hosts" {
  description = "The proxies by name, as ../hosts gives them, with shard, role (first or standby, at the very first start), listen_port and admin_port."
  value = {
    for name, host in module.hosts.hosts : name => merge(host, {
      shard       = local.placed[name].shard
      role        = local.placed[name].role
      listen_port = var.shards[local.placed[name].shard].listen_port
      admin_port  = var.shards[local.placed[name].shard].admin_port
    })
  }

  precondition {
    condition     = var.per_shard == 1 || var.allow_single_zone || length(module.hosts.zones) > 1
    error_message = "Both proxies of a shard would be in one availability zone (${join(", ", module.hosts.zones)}), and are lost with it: give subnets of two zones, or set per_shard = 1."
  }
  precondition {
    condition     = length(local.placed) == var.per_shard * length(var.shards)
    error_message = "Two proxies would have one host name: the second proxy of a shard is named like the first, with -b at the end. Rename the shard whose name ends in b in the plan."
  }
}

output "security_group_id" {
  description = "Security group of the proxies."
  value       = module.hosts.security_group_id
}

output "alarms" {
  description = "Number of alarms."
  value       = length(aws_cloudwatch_metric_alarm.recovery)
}

output "billed" {
  description = "What costs."
  value       = module.hosts.billed
}

output "standing" {
  description = "Subnets of the hosts that AWS has, by name; also of hosts that are to go."
  value       = module.hosts.standing
}
