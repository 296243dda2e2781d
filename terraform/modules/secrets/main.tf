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
}

# Drawn by AWS. It is drawn anew at each refresh, so what holds it ignores changes.
data "aws_secretsmanager_random_password" "this" {
  for_each = var.generate ? local.generations : {}

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
  for_each = var.generate ? local.in_secrets_manager : {}

  secret_id     = aws_secretsmanager_secret.this[each.key].id
  secret_string = data.aws_secretsmanager_random_password.this[each.key].random_password

  lifecycle {
    ignore_changes = [secret_string]
  }
}

resource "aws_ssm_parameter" "this" {
  for_each = local.in_ssm

  name        = "/${var.prefix}/${each.key}"
  description = "Password ${each.value.password}, generation ${each.value.generation}"
  type        = "SecureString"
  key_id      = var.kms_key_arn
  value       = data.aws_secretsmanager_random_password.this[each.key].random_password
  tags        = var.tags

  lifecycle {
    ignore_changes = [value]
  }
}
