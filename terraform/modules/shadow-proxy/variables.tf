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

variable "shards" {
  type        = map(object({ listen_port = number, admin_port = number }))
  description = "The plan's shards by name, and the ports at which the proxy of each listens."

  validation {
    condition     = length(distinct([for shard in keys(var.shards) : lower(replace(shard, "/[._]/", "-"))])) == length(var.shards)
    error_message = "Two shards would have one host name: upper and lower case are one there, and so are dot, dash and underscore. Rename one in the plan."
  }
  validation {
    condition     = alltrue([for shard in values(var.shards) : shard.listen_port >= 1 && shard.listen_port <= 65535 && shard.admin_port >= 1 && shard.admin_port <= 65535])
    error_message = "A shard's ports are numbers from 1 to 65535: give listen, and admin.listen, a port in the plan."
  }
  validation {
    condition     = alltrue([for shard in values(var.shards) : shard.listen_port != shard.admin_port])
    error_message = "A shard's proxy listens for clients and for its admin HTTP on one host: give each its own port in the plan."
  }
}

variable "per_shard" {
  type        = number
  description = "Proxies of each shard: 1, or 2 in two availability zones, of which one serves and the other is its standby."
  default     = 1

  validation {
    condition     = contains([1, 2], var.per_shard)
    error_message = "per_shard is 1, or 2: a proxy and its standby."
  }
}

variable "allow_single_zone" {
  type        = bool
  description = "Whether both proxies of a shard may be in one availability zone. For rehearsals."
  default     = false
}

variable "instance_type" {
  type        = string
  description = "Instance type of the proxies: one thread serves a shard, so a fast core counts, not many. x86-64 by default, which releases are tested on; arm64 (Graviton) needs an AMI of its own."
  default     = "c7i.large"
}

variable "data" {
  type        = object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) })
  description = "Data volume of each proxy, for its durable state: GiB, IOPS, MiB/s."
  default     = { gib = 16 }
}

variable "additional_security_group_ids" {
  type        = list(string)
  description = "Security groups that the proxies are members of, too: that of the old Redis's clients lets them in there."
  default     = []
}

variable "alarm_topic_arns" {
  type        = list(string)
  description = "SNS topics notified when a proxy is recovered."
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
