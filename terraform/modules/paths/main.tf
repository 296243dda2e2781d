# Named paths between security groups, and nothing else: one table says who may talk to whom.
#
# A path from a group of ours opens its egress, a path to one of ours its ingress; between two of ours it opens both.

locals {
  # One rule for each pair of ends and port, however many paths it is of: AWS refuses the second.
  named = {
    for rule in flatten([
      for name, path in var.paths : [for port in path.ports : { key = "${path.from} → ${path.to}:${port}", name = name, from = path.from, to = path.to, port = port }]
    ]) : rule.key => rule...
  }
  paths = { for key, rules in local.named : key => merge(rules[0], { name = substr(join(", ", rules[*].name), 0, 255) }) }

  ingress = { for key, path in local.paths : key => path if contains(keys(var.groups), path.to) }
  egress  = { for key, path in local.paths : key => path if contains(keys(var.groups), path.from) }
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  for_each = local.ingress

  security_group_id            = var.groups[each.value.to]
  description                  = each.value.name
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = lookup(var.groups, each.value.from, startswith(each.value.from, "sg-") ? each.value.from : null)
  cidr_ipv4                    = can(cidrhost(each.value.from, 0)) ? each.value.from : null
  tags                         = merge(var.tags, { Name = each.value.name })

  lifecycle {
    precondition {
      condition     = contains(keys(var.groups), each.value.from) || can(regex("^sg-[0-9a-f]+$", each.value.from)) || can(cidrhost(each.value.from, 0))
      error_message = "Path ${each.value.name} begins at ${each.value.from}, which is nothing: write ${join(", ", keys(var.groups))}, a security group (sg-…) or a range of addresses."
    }
  }
}

resource "aws_vpc_security_group_egress_rule" "this" {
  for_each = local.egress

  security_group_id            = var.groups[each.value.from]
  description                  = each.value.name
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = lookup(var.groups, each.value.to, startswith(each.value.to, "sg-") ? each.value.to : null)
  cidr_ipv4                    = can(cidrhost(each.value.to, 0)) ? each.value.to : null
  prefix_list_id               = startswith(each.value.to, "pl-") ? each.value.to : null
  tags                         = merge(var.tags, { Name = each.value.name })

  lifecycle {
    precondition {
      condition     = contains(keys(var.groups), each.value.to) || can(regex("^(sg|pl)-[0-9a-f]+$", each.value.to)) || can(cidrhost(each.value.to, 0))
      error_message = "Path ${each.value.name} ends at ${each.value.to}, which is nothing: write ${join(", ", keys(var.groups))}, a security group (sg-…), a prefix list (pl-…) or a range of addresses."
    }
  }
}
