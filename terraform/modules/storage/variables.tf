variable "name" {
  type        = string
  description = "Name of the bucket; it must be nobody else's in all of AWS."

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.name))
    error_message = "A bucket's name takes small letters, digits, dots and dashes, 3 to 63, and begins and ends with a letter or digit."
  }
}

variable "transfer_name" {
  type        = string
  description = "Name of the bucket through which Ansible sends files by Session Manager; null where it does not."
  default     = null

  validation {
    condition     = var.transfer_name == null || can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.transfer_name))
    error_message = "A bucket's name takes small letters, digits, dots and dashes, 3 to 63, and begins and ends with a letter or digit."
  }
}

variable "kms_key_arn" {
  type        = string
  description = "KMS key of the objects."
}

variable "keep_backups_days" {
  type        = number
  description = "Days for which backups are kept. Reports are kept forever."
  default     = 35

  validation {
    condition     = var.keep_backups_days >= 1 && floor(var.keep_backups_days) == var.keep_backups_days
    error_message = "keep_backups_days is a whole number of days, 1 or more."
  }
}

variable "protect" {
  type        = bool
  description = "Whether a bucket that holds something is kept. Before terraform destroy: apply with false."
  default     = true
}

variable "tags" {
  type        = map(string)
  description = "Tags of the bucket."
  default     = {}
}
