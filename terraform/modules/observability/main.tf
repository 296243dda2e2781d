# The monitoring host, and what watches where it cannot look: CloudWatch alarms, with a topic that tells people.

locals {
  hosts = { monitoring = { subnet_id = var.base.subnet_ids[0] } }
}

module "hosts" {
  source = "../hosts"

  name                          = "${var.name}-monitoring"
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

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = var.base.kms_key_arn
  tags              = var.base.tags
}

resource "aws_sns_topic_subscription" "email" {
  for_each = var.emails

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = each.value
}

locals {
  watched = merge(var.watched, { monitoring = { id = module.hosts.hosts["monitoring"].id, cpu_percent = 90 } })
}

resource "aws_cloudwatch_metric_alarm" "down" {
  for_each = local.watched

  alarm_name          = "${var.name}-${each.key}-down"
  alarm_description   = "${each.key} fails its status checks, or tells nothing any more."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed"
  dimensions          = { InstanceId = each.value.id }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  period              = 60
  evaluation_periods  = 2
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.base.tags
}

resource "aws_cloudwatch_metric_alarm" "cpu" {
  for_each = local.watched

  alarm_name          = "${var.name}-${each.key}-cpu"
  alarm_description   = "${each.key} has been above ${each.value.cpu_percent} % CPU for five minutes: it is near the most that it can take."
  namespace           = "AWS/EC2"
  metric_name         = "CPUUtilization"
  dimensions          = { InstanceId = each.value.id }
  statistic           = "Average"
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.cpu_percent
  period              = 60
  evaluation_periods  = 5
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.base.tags
}
