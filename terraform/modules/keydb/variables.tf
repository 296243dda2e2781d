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

variable "targets" {
  type        = set(string)
  description = "Names of the targets: each is a primary with its replicas, or, with active_active, a group of active nodes."

  validation {
    condition     = length(var.targets) > 0
    error_message = "targets is empty: name at least one."
  }
  validation {
    condition     = alltrue([for target in var.targets : can(regex("^[a-z0-9]([a-z0-9-]{0,59}[a-z0-9])?$", target))])
    error_message = "A target's name is a DNS label: small letters, digits and dashes, at most 61."
  }
}

variable "nodes_per_target" {
  type        = number
  description = "Nodes of each target."
  default     = 2

  validation {
    condition     = var.nodes_per_target >= 2 && var.nodes_per_target <= 7 && floor(var.nodes_per_target) == var.nodes_per_target
    error_message = "nodes_per_target is a whole number from 2 to 7: with one node alone a target ends with its host."
  }
}

variable "active_active" {
  type        = bool
  description = "Whether all nodes of a target take writes. Counters lose increments then."
  default     = false
}

variable "required_bytes" {
  type        = map(number)
  description = "What the sources of each target may take, in bytes; a target that is absent is not checked."
  default     = {}
}

variable "maxmemory_percent" {
  type        = number
  description = "Share of a host's memory that KeyDB may take for data."
  default     = 60

  validation {
    condition     = var.maxmemory_percent >= 10 && var.maxmemory_percent <= 80
    error_message = "maxmemory_percent is a number from 10 to 80: a fork that saves the data, and the replicas' buffers, need the rest."
  }
}

variable "allow_single_zone" {
  type        = bool
  description = "Whether all nodes may be in one availability zone. For rehearsals."
  default     = false
}

variable "instance_type" {
  type        = string
  description = "Instance type of the nodes. x86-64 by default, which releases are tested on; arm64 (Graviton) needs an AMI of its own."
  default     = "r7i.large"
}

variable "data" {
  type        = object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) })
  description = "Data volume of each node: GiB, IOPS, MiB/s."
  default     = { gib = 64 }
}

variable "spread" {
  type        = bool
  description = "Whether each node of a target has a rack of its own in its zone. Holds for nodes that are made or replaced."
  default     = true
}

variable "secret_arns" {
  type        = list(string)
  description = "Passwords that the hosts may read."
  default     = []
}

variable "bucket_prefix_arns" {
  type        = list(string)
  description = "What the hosts may write below, such as arn:aws:s3:::bucket/backups/."
  default     = []
}
