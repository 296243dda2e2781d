# Passwords, each in generations: servers accept all that are listed, whoever logs in uses one of them. A new one is first
# accepted, then used, and the old one dropped last, so that nobody is locked out in between.

locals {
  # "keydb-app/2" => { password = "keydb-app", generation = "2" }
  generations = merge([
    for password, rotation in var.passwords : {
      for generation in rotation.accept : "${password}/${generation}" => { password = password, generation = generation }
    }
  ]...)

  in_secrets_manager = var.store == "secretsmanager" ? local.generations : {}
  in_ssm             = var.store == "ssm" ? local.generations : {}

  in_state = contains(var.in_state, "all") ? toset(keys(local.generations)) : var.in_state
  drawn    = { for key in keys(local.generations) : key => contains(local.in_state, key) ? "in state" : "write-only" if var.generate }
}

# A value that is not in the state is drawn here while Terraform applies: two UUIDs, which are known in no plan. It is a
# function and not an ephemeral resource: a Terraform before 1.10 cannot read a file that has one, even where
# before_1_11_override.tf takes its place.
#
# One that is in the state is drawn by AWS. It is drawn anew at each refresh, so what holds it ignores changes.
data "aws_secretsmanager_random_password" "this" {
  for_each = { for key, how in local.drawn : key => how if how == "in state" }

  password_length     = 48
  exclude_punctuation = true
}

resource "aws_secretsmanager_secret" "this" {
  for_each = local.in_secrets_manager

  name                    = "${var.prefix}/${each.key}"
  description             = "Password ${each.value.password}, generation ${each.value.generation}"
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = var.recovery_days
  tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "this" {
  for_each = { for key, how in local.drawn : key => how if contains(keys(local.in_secrets_manager), key) }

  secret_id                = aws_secretsmanager_secret.this[each.key].id
  secret_string            = each.value == "in state" ? data.aws_secretsmanager_random_password.this[each.key].random_password : null
  secret_string_wo         = each.value == "in state" ? null : replace("${uuid()}${uuid()}", "-", "")
  secret_string_wo_version = each.value == "in state" ? null : 1

  lifecycle {
    ignore_changes = [secret_string]
  }
}

resource "aws_ssm_parameter" "this" {
  for_each = local.in_ssm

  name             = "/${var.prefix}/${each.key}"
  description      = "Password ${each.value.password}, generation ${each.value.generation}"
  type             = "SecureString"
  key_id           = var.kms_key_arn
  value            = local.drawn[each.key] == "in state" ? data.aws_secretsmanager_random_password.this[each.key].random_password : null
  value_wo         = local.drawn[each.key] == "in state" ? null : replace("${uuid()}${uuid()}", "-", "")
  value_wo_version = local.drawn[each.key] == "in state" ? null : 1
  tags             = var.tags

  lifecycle {
    ignore_changes = [value]
  }
}
