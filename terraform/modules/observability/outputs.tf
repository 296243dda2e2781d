output "hosts" {
  description = "The monitoring host, as ../hosts gives it."
  value       = module.hosts.hosts
}

output "security_group_id" {
  description = "Security group of the monitoring host."
  value       = module.hosts.security_group_id
}

output "topic_arn" {
  description = "SNS topic of the alarms."
  value       = aws_sns_topic.alarms.arn
}

output "alarms" {
  description = "Number of alarms."
  value       = length(aws_cloudwatch_metric_alarm.down) + length(aws_cloudwatch_metric_alarm.cpu)
}

output "billed" {
  description = "What costs."
  value       = module.hosts.billed
}

output "standing" {
  description = "Subnets of the hosts that AWS has, by name; also of hosts that are to go."
  value       = module.hosts.standing
}
