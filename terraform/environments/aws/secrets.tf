# The key of everything that is stored, the passwords, and who may read which.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

resource "aws_kms_key" "this" {
  description             = "Volumes, passwords, reports, backups and alarms of ${local.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  tags                    = local.tags

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "AccountByItsPolicies"
        Effect    = "Allow"
        Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "AlarmsIntoTheTopic"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
      },
    ]
  })
}

resource "aws_kms_alias" "this" {
  name          = "alias/${local.name}"
  target_key_id = aws_kms_key.this.key_id
}

locals {
  password_names = ["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel", "keydb-app", "proxy-admin-token", "grafana-admin"]

  # By kind of host: what it logs in with, and what it must know others by.
  readers = {
    keydb        = ["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel", "keydb-app"]
    shadow_proxy = ["keydb-proxy", "proxy-admin-token", "source-proxy"]
    monitoring   = concat(["keydb-exporter", "proxy-admin-token", "grafana-admin", "source-exporter"], local.monitoring_sentinel ? ["keydb-sentinel", "keydb-haproxy"] : [])
    loadgen      = ["keydb-app"]
  }
  readable = { for kind, names in local.readers : kind => concat(flatten([for name in names : lookup(module.secrets.arns, name, [])]), [for name in names : var.source_secrets[name] if contains(keys(var.source_secrets), name)]) }
}

module "secrets" {
  source = "../../modules/secrets"

  prefix      = local.name
  store       = var.passwords.store
  generate    = var.passwords.generate
  in_state    = var.passwords.in_state
  passwords   = { for name in local.password_names : name => lookup(var.passwords.rotation, name, { use = "1", accept = ["1"] }) }
  kms_key_arn = aws_kms_key.this.arn
  tags        = local.tags
}
