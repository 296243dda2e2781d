# The names that applications use, in a private zone. Each leads to the source, to the proxy, or to the target: one variable.
#
#   dns   the name is a record that is changed: clients follow when they connect anew; their port stays, so all three have one
#   nlb   the name is that of a network load balancer: its listener forwards to one of three target groups; ports may differ
#
# Of two proxies of a shard one serves, and the other refuses connections. The load balancer asks which is ready. A record has
# the addresses of both: a client must try the second one where the first refuses.

locals {
  nlb     = var.via == "nlb"
  zone_id = var.zone.id != null ? var.zone.id : aws_route53_zone.this[0].zone_id

  names = { for name, choice in var.names : name => choice if contains(keys(var.destinations), choice.shard) }

  # Of each name: where it leads to now.
  chosen = {
    for name, choice in local.names : name => {
      source = { hosts = [var.destinations[choice.shard].source.host], port = var.destinations[choice.shard].source.port }
      proxy  = { hosts = var.destinations[choice.shard].proxy.addresses, port = var.destinations[choice.shard].proxy.port }
      target = { hosts = var.destinations[choice.shard].target.addresses, port = var.destinations[choice.shard].target.port }
    }[choice.to]
  }
  by_name = { for name, choice in local.names : name => choice.to == "source" && !can(cidrhost("${var.destinations[choice.shard].source.host}/32", 0)) }
  ports   = { for name, choice in local.names : name => local.nlb ? coalesce(choice.port, var.destinations[choice.shard].proxy.port) : local.chosen[name].port }

  # Of each shard: where its names lead to.
  leads_to = { for shard in distinct(values(local.names)[*].shard) : shard => distinct([for choice in values(local.names) : choice.to if choice.shard == shard]) }
}

resource "aws_route53_zone" "this" {
  count = var.zone.id == null ? 1 : 0

  name          = var.zone.name
  comment       = "Names of ${var.name}"
  force_destroy = !var.protect
  tags          = var.tags

  vpc {
    vpc_id = var.vpc_id
  }

  lifecycle {
    # Other VPCs may be associated elsewhere.
    ignore_changes = [vpc]
  }
}

resource "aws_route53_record" "hosts" {
  for_each = var.addresses

  zone_id = local.zone_id
  name    = "${each.key}.${var.zone.name}"
  type    = "A"
  ttl     = var.ttl
  records = each.value
}

resource "aws_route53_record" "names" {
  for_each = local.nlb ? {} : local.names

  zone_id = local.zone_id
  name    = "${each.key}.${var.zone.name}"
  type    = local.by_name[each.key] ? "CNAME" : "A"
  ttl     = var.ttl
  records = local.chosen[each.key].hosts

  lifecycle {
    precondition {
      condition = length(distinct([
        var.destinations[each.value.shard].source.port,
        var.destinations[each.value.shard].proxy.port,
        var.destinations[each.value.shard].target.port,
      ])) == 1
      error_message = "Clients of ${each.key} keep their port when its name moves to another server, but source, proxy and target of shard ${each.value.shard} have ${var.destinations[each.value.shard].source.port}, ${var.destinations[each.value.shard].proxy.port} and ${var.destinations[each.value.shard].target.port}: give all one port in the plan, or set via = \"nlb\"."
    }
  }
}
