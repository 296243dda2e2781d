locals {
  # Read once the migration runs: not before, for the path is known only then.
  migration = jsondecode(file(terraform_data.migration.output.running))
}

output "source" {
  description = "The old Redis: label and URL."
  value       = { label = local.migration.source.label, url = local.migration.source.url }
}

output "target" {
  description = "KeyDB, or what stands in for it where this machine has none: label, URL, stand_in (null for a real KeyDB)."
  value       = { label = local.migration.target.label, url = local.migration.target.url, stand_in = local.migration.target.standIn }
}

output "proxy" {
  description = "Where clients connect to."
  value       = local.migration.proxy
}

output "admin" {
  description = "The proxy's admin HTTP."
  value       = local.migration.admin
}

output "plan" {
  description = "The plan: shadow-compare status --plan FILE."
  value       = local.migration.plan
}
