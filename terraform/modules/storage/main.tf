# The bucket of reports and backups: private, versioned, encrypted under the given key, reached over TLS only. Beside it,
# where hosts are reached through Session Manager, one that keeps nothing.

resource "aws_s3_bucket" "this" {
  bucket        = var.name
  force_destroy = !var.protect
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket = aws_s3_bucket.this.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    id     = "backups"
    status = "Enabled"

    filter {
      prefix = local.backups
    }
    expiration {
      days = var.keep_backups_days
    }
    noncurrent_version_expiration {
      noncurrent_days = var.keep_backups_days
    }
  }

  rule {
    id     = "unfinished"
    status = "Enabled"

    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.this.arn, "${aws_s3_bucket.this.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.this]
}

# What Ansible sends to the hosts through Session Manager, secrets among it: no versions, nothing older than a day.
resource "aws_s3_bucket" "transfer" {
  #checkov:skip=CKV_AWS_21:Nothing may stay of the secrets that are sent through it.
  count = var.transfer_name == null ? 0 : 1

  bucket        = var.transfer_name
  force_destroy = true
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "transfer" {
  count = length(aws_s3_bucket.transfer)

  bucket                  = aws_s3_bucket.transfer[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "transfer" {
  count = length(aws_s3_bucket.transfer)

  bucket = aws_s3_bucket.transfer[0].id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "transfer" {
  count = length(aws_s3_bucket.transfer)

  bucket = aws_s3_bucket.transfer[0].id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "transfer" {
  count = length(aws_s3_bucket.transfer)

  bucket = aws_s3_bucket.transfer[0].id

  rule {
    id     = "a-day"
    status = "Enabled"

    filter {}
    expiration {
      days = 1
    }
    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

resource "aws_s3_bucket_policy" "transfer" {
  count = length(aws_s3_bucket.transfer)

  bucket = aws_s3_bucket.transfer[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.transfer[0].arn, "${aws_s3_bucket.transfer[0].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.transfer]
}
