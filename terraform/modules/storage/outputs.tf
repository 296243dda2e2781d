locals {
  reports = "reports/"
  backups = "backups/"
}

output "name" {
  description = "Name of the bucket."
  value       = aws_s3_bucket.this.bucket
}

output "prefixes" {
  description = "Prefixes of the bucket by what is kept there."
  value       = { reports = local.reports, backups = local.backups }
}

output "prefix_arns" {
  description = "ARNs that name what is below each prefix, for policies: append *."
  value       = { reports = "${aws_s3_bucket.this.arn}/${local.reports}", backups = "${aws_s3_bucket.this.arn}/${local.backups}" }
}

output "transfer_name" {
  description = "Name of the bucket that Ansible sends files through; null where there is none."
  value       = one(aws_s3_bucket.transfer[*].bucket)
}
