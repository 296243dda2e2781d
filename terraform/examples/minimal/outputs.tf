output "inventory" {
  description = "For Ansible."
  value       = module.migration.inventory
}

output "source_access" {
  description = "What the old Redis must let in."
  value       = module.migration.source_access
}
