output "open" {
  description = "Every path that is open: what it is for, by \"from → to:port\"."
  value       = { for key, path in local.paths : key => path.name }

  precondition {
    condition     = alltrue([for path in values(var.paths) : contains(keys(var.groups), path.from) || contains(keys(var.groups), path.to)])
    error_message = "A path with no end in groups opens nothing: begin or end it at ${join(", ", keys(var.groups))}."
  }
}
