output "inventory" {
  description = "For Ansible."
  value       = module.migration.inventory
}

output "shards" {
  description = "The shards, to compare with what shadow-proxy --plan migration.yaml --check names."
  value       = module.migration.shards
}

output "source_access" {
  description = "What the nodes of the Redis Cluster must let in."
  value       = module.migration.source_access
}
