locals {
  ids  = var.store == "ssm" ? { for key, parameter in aws_ssm_parameter.this : key => parameter.name } : { for key, secret in aws_secretsmanager_secret.this : key => secret.name }
  arns = var.store == "ssm" ? { for key, parameter in aws_ssm_parameter.this : key => parameter.arn } : { for key, secret in aws_secretsmanager_secret.this : key => secret.arn }
}

output "passwords" {
  description = "Where each password is kept, by its name: { use = ID, accept = [ID, …] }. Never the password."
  value = {
    for name, rotation in var.passwords : name => {
      use    = local.ids["${name}/${rotation.use}"]
      accept = [for generation in sort(tolist(rotation.accept)) : local.ids["${name}/${generation}"]]
    }
  }

  precondition {
    condition     = length(setsubtract(local.in_state, keys(local.generations))) == 0
    error_message = "in_state has ${join(", ", setsubtract(local.in_state, keys(local.generations)))}, and there is no such password: write all, or some of ${join(", ", keys(local.generations))}."
  }
}

output "arns" {
  description = "ARNs of the generations of each password, by its name."
  value = {
    for name, rotation in var.passwords : name => [for generation in sort(tolist(rotation.accept)) : local.arns["${name}/${generation}"]]
  }
}
