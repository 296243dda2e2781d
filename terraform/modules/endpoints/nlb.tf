# Where the names are those of a load balancer.

locals {
  # "checkout/proxy" => { name = "checkout", to = "proxy", hosts, port }
  groups = merge([
    for name, choice in local.nlb ? local.names : {} : {
      for to, group in {
        source = { hosts = [var.destinations[choice.shard].source.host], port = var.destinations[choice.shard].source.port }
        proxy  = { hosts = var.destinations[choice.shard].proxy.addresses, port = var.destinations[choice.shard].proxy.port }
        target = { hosts = var.destinations[choice.shard].target.addresses, port = var.destinations[choice.shard].target.port }
      } : "${name}/${to}" => merge(group, { name = name, to = to }) if to == "proxy" || (var.destinations[choice.shard].source.kind != "cluster" && (to == "target" || can(cidrhost("${var.destinations[choice.shard].source.host}/32", 0))))
    }
  ]...)
  # By position, for addresses may not be known yet.
  members = merge([
    for key, group in local.groups : { for i, host in group.hosts : "${key}/${i}" => merge(group, { group = key, host = host }) }
  ]...)
}

resource "aws_security_group" "nlb" {
  count = local.nlb ? 1 : 0

  name_prefix = "${var.name}-names-"
  description = "Load balancer of the names of ${var.name}"
  vpc_id      = var.vpc_id
  tags        = merge(var.tags, { Name = "${var.name}-names" })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_lb" "this" {
  count = local.nlb ? 1 : 0

  name_prefix                      = "names-"
  internal                         = true
  load_balancer_type               = "network"
  subnets                          = var.subnet_ids
  security_groups                  = aws_security_group.nlb[*].id
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = var.protect
  tags                             = merge(var.tags, { Name = "${var.name}-names" })
}

resource "aws_lb_target_group" "this" {
  for_each = local.groups

  name_prefix            = { source = "sourc-", proxy = "proxy-", target = "targt-" }[each.value.to]
  port                   = each.value.port
  protocol               = "TCP"
  target_type            = "ip"
  vpc_id                 = var.vpc_id
  deregistration_delay   = 10
  connection_termination = true
  tags                   = merge(var.tags, { Name = each.key })

  # A proxy is asked whether it serves: its standby does not. Both numbers are the lowest that AWS takes.
  health_check {
    protocol            = each.value.to == "proxy" ? "HTTP" : "TCP"
    port                = each.value.to == "proxy" ? tostring(var.destinations[var.names[each.value.name].shard].proxy.admin_port) : "traffic-port"
    path                = each.value.to == "proxy" ? "/readyz" : null
    matcher             = each.value.to == "proxy" ? "200" : null
    interval            = each.value.to == "proxy" ? 5 : 10
    timeout             = each.value.to == "proxy" ? 2 : null
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_lb_target_group_attachment" "this" {
  for_each = local.members

  target_group_arn = aws_lb_target_group.this[each.value.group].arn
  target_id        = each.value.host
  port             = each.value.port
}

resource "aws_lb_listener" "this" {
  for_each = local.nlb ? local.names : {}

  load_balancer_arn = aws_lb.this[0].arn
  port              = local.ports[each.key]
  protocol          = "TCP"
  tags              = merge(var.tags, { Name = each.key })

  default_action {
    type             = "forward"
    target_group_arn = try(aws_lb_target_group.this["${each.key}/${each.value.to}"].arn, null)
  }

  lifecycle {
    precondition {
      condition     = length([for name, port in local.ports : name if port == local.ports[each.key]]) == 1
      error_message = "The names of one load balancer differ by port, but ${join(" and ", [for name, port in local.ports : name if port == local.ports[each.key]])} have ${local.ports[each.key]}: give each its own port in names."
    }
  }
}

resource "aws_route53_record" "nlb" {
  for_each = local.nlb ? local.names : {}

  zone_id = local.zone_id
  name    = "${each.key}.${var.zone.name}"
  type    = "A"

  alias {
    name                   = aws_lb.this[0].dns_name
    zone_id                = aws_lb.this[0].zone_id
    evaluate_target_health = false
  }
}

resource "aws_cloudwatch_metric_alarm" "unhealthy" {
  for_each = local.nlb ? local.names : {}

  alarm_name        = "${var.name}-${each.key}-unhealthy"
  alarm_description = each.value.to == "proxy" ? "The load balancer reaches no proxy of ${each.key} that serves." : "The load balancer reaches less than all of what ${each.key} leads to (${each.value.to})."
  namespace         = "AWS/NetworkELB"
  # A standby counts as unhealthy.
  metric_name         = each.value.to == "proxy" ? "HealthyHostCount" : "UnHealthyHostCount"
  statistic           = "Maximum"
  comparison_operator = each.value.to == "proxy" ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = each.value.to == "proxy" ? 1 : 0
  period              = 60
  evaluation_periods  = 2
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags

  dimensions = {
    LoadBalancer = aws_lb.this[0].arn_suffix
    TargetGroup  = try(aws_lb_target_group.this["${each.key}/${each.value.to}"].arn_suffix, null)
  }
}
