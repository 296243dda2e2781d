output "hosts" {
  description = "The proxies by name, as ../hosts gives them, with shard, listen_port and admin_port."
  value = {
    for name, host in module.hosts.hosts : name => merge(host, {
      shard       = local.names[name]
      listen_port = var.shards[local.names[name]].listen_port
      admin_port  = var.shards[local.names[name]].admin_port
    })
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
