output "names" {
  description = "By application: { name, port, to, shard }."
  value       = { for name, choice in local.names : name => { name = "${name}.${var.zone.name}", port = local.ports[name], to = choice.to, shard = choice.shard } }

  precondition {
    condition     = length(local.names) == length(var.names)
    error_message = "There is no shard ${join(", ", distinct([for choice in values(var.names) : choice.shard if !contains(keys(var.destinations), choice.shard)]))}: names takes ${join(", ", keys(var.destinations))}."
  }
  precondition {
    condition     = length(setintersection(keys(var.names), keys(var.addresses))) == 0
    error_message = "Name ${join(", ", setintersection(keys(var.names), keys(var.addresses)))} is that of a host or a target in the same zone: choose another for the application."
  }
  precondition {
    condition     = alltrue([for to in values(local.leads_to) : !(contains(to, "target") && length(to) > 1)])
    error_message = "Names of shard ${join(", ", [for shard, to in local.leads_to : shard if contains(to, "target") && length(to) > 1])} point to the target, and others do not: clients of the others do not see what is written to the target alone. Point all names of a shard to the target together, after complete."
  }
  precondition {
    condition     = alltrue([for choice in values(local.names) : choice.to != "source" || var.destinations[choice.shard].source.kind != "sentinel"])
    error_message = "A name cannot lead to a source behind Sentinel, whose clients ask the Sentinels: let those clients keep their settings, and point them at the proxy's name when they move."
  }
  precondition {
    condition     = alltrue([for choice in values(local.names) : choice.to == "proxy" || var.destinations[choice.shard].source.kind != "cluster"])
    error_message = "A name of a cluster leads to the proxy: to the nodes of Redis or KeyDB, clients find their way by themselves. Give them the addresses of some nodes."
  }
  precondition {
    condition     = !local.nlb || alltrue([for name, choice in local.names : !local.by_name[name]])
    error_message = "A load balancer forwards to addresses, and the source of ${join(", ", [for name, by_name in local.by_name : name if by_name])} is known by name: set via = \"dns\"."
  }
}

output "zone_id" {
  description = "The private zone."
  value       = local.zone_id
}

output "ports" {
  description = "Port of each name."
  value       = local.ports
}

output "security_group_id" {
  description = "Security group of the load balancer; null without one."
  value       = one(aws_security_group.nlb[*].id)
}

output "billed" {
  description = "What costs: zones, load balancers, alarms."
  value = {
    zones          = length(aws_route53_zone.this)
    load_balancers = length(aws_lb.this)
    alarms         = length(aws_cloudwatch_metric_alarm.unhealthy)
  }
}

check "one_way_to_the_source" {
  assert {
    condition     = alltrue([for to in values(local.leads_to) : !(contains(to, "source") && contains(to, "proxy"))])
    error_message = "Some names of shard ${join(", ", [for shard, to in local.leads_to : shard if contains(to, "source") && contains(to, "proxy")])} lead to the source, others to the proxy. The proxy does not see writes that bypass it: leave every workload in off until all names point to the proxy."
  }
}
