output "inventory" {
  description = "For Ansible."
  value       = module.migration.inventory
}

output "source_access" {
  description = "What the old Redis must let in."
  value       = module.migration.source_access
}

output "names" {
  description = "The names that applications use, and where each leads to."
  value       = module.migration.names
}

output "paths" {
  description = "Every path that the security groups let through."
  value       = module.migration.paths
}

output "cost" {
  description = "What it costs a month, at the prices given."
  value       = module.migration.cost
}
