# One or two hosts a shard, two of them in two zones. One that fails comes back by itself: its hardware fails, and it is moved; it
# hangs, and it is rebooted. Its state, on a volume of its own, comes with it.

locals {
  first = { for shard in keys(var.shards) : "proxy-${lower(replace(shard, "/[._]/", "-"))}" => shard }
  # The subnet of a shard's first host, by its number: where it is, if it is there already. So another shard moves none.
  subnets = {
    for i, name in sort(keys(local.first)) : name => concat([for id in [lookup(module.hosts.standing, name, "")] : index(var.base.subnet_ids, id) if contains(var.base.subnet_ids, id)], [i])[0]
  }
  # The first host of a shard is where it is without a second one: adding that replaces nothing.
  placed = merge([
    for name in keys(local.first) : {
      for n in range(var.per_shard) : n == 0 ? name : "${name}-b" => {
        shard     = local.first[name]
        role      = n == 0 ? "first" : "standby"
        subnet_id = var.base.subnet_ids[(local.subnets[name] + n) % length(var.base.subnet_ids)]
      }
    }
  ]...)
  hosts = { for name, host in local.placed : name => { subnet_id = host.subnet_id } }
}

module "hosts" {
  source = "../hosts"

  name                          = "${var.name}-proxy"
  hosts                         = local.hosts
  instance_type                 = var.instance_type
  data                          = var.data
  additional_security_group_ids = var.additional_security_group_ids
  secret_arns                   = var.secret_arns
  secret_kms_key_arns           = var.secret_kms_key_arns
  bucket_prefix_arns            = var.bucket_prefix_arns

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

data "aws_region" "current" {}

data "aws_partition" "current" {}

locals {
  recoveries = {
    System   = { action = "recover", what = "its hardware failed: it is moved to another" }
    Instance = { action = "reboot", what = "it does not answer: it is rebooted" }
  }
  alarms = merge([
    for name in keys(local.hosts) : { for check, recovery in local.recoveries : "${name}-${recovery.action}" => merge(recovery, { host = name, check = check }) }
  ]...)
}

resource "aws_cloudwatch_metric_alarm" "recovery" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "Shadow proxy ${each.value.host}: ${each.value.what}. ${var.per_shard > 1 ? "The other proxy of the shard serves meanwhile." : "Clients of the shard are cut off meanwhile."}"
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed_${each.value.check}"
  dimensions          = { InstanceId = module.hosts.hosts[each.value.host].id }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  period              = 60
  # A reboot waits for longer than a recovery, so that both never act at once.
  evaluation_periods = each.value.action == "recover" ? 2 : 3
  alarm_actions      = concat(["arn:${data.aws_partition.current.partition}:automate:${data.aws_region.current.region}:ec2:${each.value.action}"], var.alarm_topic_arns)
  ok_actions         = var.alarm_topic_arns
  tags               = var.base.tags
}
