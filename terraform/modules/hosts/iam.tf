# What a host may do in AWS: be reached through Session Manager, read its own secrets, write below its own prefixes of the bucket.

data "aws_region" "current" {}

resource "aws_iam_role" "this" {
  name_prefix = "${var.name}-"
  description = "Hosts ${var.name}"
  tags        = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_instance_profile" "this" {
  name_prefix = "${var.name}-"
  role        = aws_iam_role.this.name
  tags        = var.tags
}

# AmazonSSMManagedInstanceCore would do, too, but reads every parameter of the account.
resource "aws_iam_role_policy" "session_manager" {
  count = var.session_manager ? 1 : 0

  name = "session-manager"
  role = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect = "Allow"
      Action = [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
      ]
      Resource = "*"
    }]
  })
}

resource "aws_iam_role_policy" "secrets" {
  count = length(var.secret_arns) > 0 ? 1 : 0

  name = "secrets"
  role = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue", "ssm:GetParameter"]
        Resource = var.secret_arns
      },
      {
        Effect   = "Allow"
        Action   = "kms:Decrypt"
        Resource = distinct(concat([var.kms_key_arn], var.secret_kms_key_arns))
        Condition = {
          StringEquals = {
            "kms:ViaService" = [for service in ["secretsmanager", "ssm"] : "${service}.${data.aws_region.current.region}.amazonaws.com"]
          }
        }
      },
    ]
  })
}

resource "aws_iam_role_policy" "bucket" {
  count = length(var.bucket_prefix_arns) > 0 ? 1 : 0

  name = "bucket"
  role = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["s3:PutObject", "s3:AbortMultipartUpload"]
        Resource = [for arn in var.bucket_prefix_arns : "${arn}*"]
      },
      {
        Effect    = "Allow"
        Action    = ["kms:GenerateDataKey", "kms:Decrypt"]
        Resource  = var.kms_key_arn
        Condition = { StringEquals = { "kms:ViaService" = "s3.${data.aws_region.current.region}.amazonaws.com" } }
      },
    ]
  })
}
