variable "name" {
  type        = string
  description = "Name of the migration, such as checkout-cache: begins the names of all that is made."
}

variable "base" {
  type = object({
    vpc_id          = string
    subnet_ids      = list(string)
    ami_id          = string
    kms_key_arn     = string
    replace         = optional(map(number), {})
    key_name        = optional(string)
    session_manager = optional(bool, true)
    replaceable     = optional(set(string), [])
    protect         = optional(bool, true)
    tags            = optional(map(string), {})
  })
  description = "What all hosts have in common, as ../hosts describes it; subnet_ids are private subnets, in the order in which hosts are dealt out."

  validation {
    condition     = length(var.base.subnet_ids) > 0 && length(distinct(var.base.subnet_ids)) == length(var.base.subnet_ids)
    error_message = "base.subnet_ids needs a private subnet at least, and each once: give one of each availability zone."
  }
}

variable "watched" {
  type        = map(object({ id = string, cpu_percent = number }))
  description = "Hosts to watch, by name: the instance, and the CPU utilisation, in percent of all its cores, above which it is near the most that it can take."
  default     = {}

  validation {
    condition     = alltrue([for host in values(var.watched) : host.cpu_percent > 0 && host.cpu_percent <= 100])
    error_message = "cpu_percent is a share of all cores: a number above 0, up to 100."
  }
  validation {
    condition     = !contains(keys(var.watched), "monitoring")
    error_message = "The monitoring host is watched anyway: leave it out of watched."
  }
}

variable "emails" {
  type        = set(string)
  description = "Mail addresses for alarms. Each receiver must confirm the mail that AWS sends."
  default     = []

  validation {
    condition     = alltrue([for email in var.emails : can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", email))])
    error_message = "emails are addresses such as oncall@example.com."
  }
}

variable "instance_type" {
  type        = string
  description = "Instance type of the monitoring host. x86-64 by default, which releases are tested on; arm64 (Graviton) needs an AMI of its own."
  default     = "t3.medium"
}

variable "data" {
  type        = object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) })
  description = "Data volume of the monitoring host, for its time series: GiB, IOPS, MiB/s."
  default     = { gib = 64 }
}

variable "additional_security_group_ids" {
  type        = list(string)
  description = "Security groups that the host is a member of, too: that of the old Redis's clients lets its exporter in there."
  default     = []
}

variable "secret_arns" {
  type        = list(string)
  description = "Passwords that the hosts may read."
  default     = []
}

variable "secret_kms_key_arns" {
  type        = list(string)
  description = "Keys of those secrets that are under another key than base.kms_key_arn."
  default     = []
}

variable "bucket_prefix_arns" {
  type        = list(string)
  description = "What the hosts may write below, such as arn:aws:s3:::bucket/reports/."
  default     = []
}
