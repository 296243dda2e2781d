mock_provider "aws" {
  mock_resource "aws_s3_bucket" {
    defaults = { arn = "arn:aws:s3:::checkout-reports" }
  }
}

variables {
  name        = "checkout-reports"
  kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k"
}

run "private" {
  assert {
    condition     = alltrue([for flag in ["block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"] : aws_s3_bucket_public_access_block.this[flag]])
    error_message = "nothing of it is public"
  }
  assert {
    condition     = one(one(aws_s3_bucket_server_side_encryption_configuration.this.rule).apply_server_side_encryption_by_default).kms_master_key_id == var.kms_key_arn
    error_message = "encrypted with the given key"
  }
  assert {
    condition     = jsondecode(aws_s3_bucket_policy.this.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false" && aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled"
    error_message = "over TLS only, and versioned"
  }
  assert {
    condition     = output.prefix_arns.backups == "arn:aws:s3:::checkout-reports/backups/"
    error_message = "prefixes"
  }
}

run "nothing_stays_of_what_is_sent" {
  variables {
    transfer_name = "checkout-reports-transfer"
  }

  assert {
    condition     = one(aws_s3_bucket_lifecycle_configuration.transfer[0].rule).expiration[0].days == 1 && one(aws_s3_bucket_lifecycle_configuration.transfer[0].rule).status == "Enabled"
    error_message = "a day"
  }
  assert {
    condition     = aws_s3_bucket_versioning.this.bucket == aws_s3_bucket.this.id && aws_s3_bucket.transfer[0].force_destroy
    error_message = "only the other bucket has versions"
  }
  assert {
    condition     = output.transfer_name == "checkout-reports-transfer" && alltrue([for flag in ["block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"] : aws_s3_bucket_public_access_block.transfer[0][flag]])
    error_message = "nothing of it is public"
  }
}

run "a_bucket_that_holds_something_is_kept" {
  assert {
    condition     = !aws_s3_bucket.this.force_destroy && length(aws_s3_bucket.transfer) == 0
    error_message = "unless protect is false"
  }
}

run "buckets_go_with_the_rest_before_destroy" {
  variables {
    protect = false
  }

  assert {
    condition     = aws_s3_bucket.this.force_destroy
    error_message = "terraform destroy empties it"
  }
}

run "refuses_a_name_with_capitals" {
  command = plan

  variables {
    name = "Checkout"
  }
  expect_failures = [var.name]
}

run "refuses_no_days" {
  command = plan

  variables {
    keep_backups_days = 0
  }
  expect_failures = [var.keep_backups_days]
}

run "refuses_a_transfer_bucket_with_capitals" {
  command = plan

  variables {
    transfer_name = "Checkout-Transfer"
  }
  expect_failures = [var.transfer_name]
}
