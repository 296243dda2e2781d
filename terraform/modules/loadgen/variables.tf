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

variable "hosts" {
  type        = number
  description = "How many load-test hosts; 0 switches them off."
  default     = 0

  validation {
    condition     = var.hosts >= 0 && var.hosts <= 20 && floor(var.hosts) == var.hosts
    error_message = "hosts is a whole number from 0 (switched off) to 20."
  }
}

variable "instance_type" {
  type        = string
  description = "Instance type of the load-test hosts. x86-64 by default, which releases are tested on; arm64 (Graviton) needs an AMI of its own."
  default     = "c7i.xlarge"
}

variable "secret_arns" {
  type        = list(string)
  description = "Passwords that the hosts may read."
  default     = []
}

variable "bucket_prefix_arns" {
  type        = list(string)
  description = "What the hosts may write below, such as arn:aws:s3:::bucket/reports/."
  default     = []
}
