output "hosts" {
  description = "The hosts by name, as ../hosts gives them; none while they are switched off."
  value       = merge(module.hosts[*].hosts...)
}

output "security_group_id" {
  description = "Security group of the hosts; null while they are switched off."
  value       = one(module.hosts[*].security_group_id)
}

output "billed" {
  description = "What costs; null while they are switched off."
  value       = one(module.hosts[*].billed)
}
