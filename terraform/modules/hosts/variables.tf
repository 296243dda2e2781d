variable "name" {
  type        = string
  description = "Name of the kind, such as checkout-cache-keydb: begins the names of all that is made."

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9-]{0,36}$", var.name))
    error_message = "name takes letters, digits and dashes, at most 37, the first a letter or digit: AWS adds 26 of its own to a role's."
  }
}

variable "hosts" {
  type        = map(object({ subnet_id = string, group = optional(string) }))
  description = "The hosts by name, and the private subnet of each. Hosts of one group have racks of their own in their zone (placement group; at most 7 hosts of a group in a zone); a group holds for hosts that are made or replaced."

  validation {
    condition     = alltrue([for name in keys(var.hosts) : can(regex("^[a-z0-9][a-z0-9-]{0,62}$", name))])
    error_message = "A host's name is a DNS label: write small letters, digits and dashes, at most 63."
  }
}

variable "vpc_id" {
  type        = string
  description = "VPC of the subnets."

  validation {
    condition     = can(regex("^vpc-[0-9a-f]+$", var.vpc_id))
    error_message = "vpc_id is the ID of a VPC: write vpc-0123456789abcdef0, as aws ec2 describe-vpcs shows it."
  }
}

variable "ami_id" {
  type        = string
  description = "AMI of the hosts, pinned."

  validation {
    condition     = can(regex("^ami-[0-9a-f]{8,17}$", var.ami_id))
    error_message = "ami_id is the ID of an image, pinned: write ami-0123456789abcdef0, not a name or an alias."
  }
}

variable "replace" {
  type        = map(number)
  description = "Hosts to replace, by name, each with a number that is higher than the last time: the new host has the current AMI, instance type, key pair and root volume, and keeps its data volume."
  default     = {}
}

variable "instance_type" {
  type        = string
  description = "Instance type of the hosts."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*\\.[a-z0-9-]+$", var.instance_type))
    error_message = "instance_type is a family and a size: write r7g.xlarge."
  }
}

variable "key_name" {
  type        = string
  description = "EC2 key pair for ssh; null where hosts are reached through Session Manager only."
  default     = null
}

variable "session_manager" {
  type        = bool
  description = "Whether the hosts may be reached through Session Manager."
  default     = true
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets in which a host that is there already stays, whatever hosts says. Empty: hosts says it."
  default     = []
}

variable "replaceable" {
  type        = set(string)
  description = "Hosts that may be ended; all others are protected against it. To replace a host: apply with its name here, then with a higher number in replace. To remove one: apply with its name here, then take it from hosts and leave its name here."
  default     = []
}

variable "protect" {
  type        = bool
  description = "Whether AWS refuses to end the hosts. Before terraform destroy: apply with false."
  default     = true
}

variable "root_gib" {
  type        = number
  description = "Size of the root volume, in GiB."
  default     = 16

  validation {
    condition     = var.root_gib >= 8 && var.root_gib <= 16384
    error_message = "root_gib is a size in GiB: write a number from 8 to 16384."
  }
}

variable "data" {
  type        = object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) })
  description = "Data volume of each host (gp3, encrypted, apart from the instance): size in GiB, IOPS, MiB/s. Null: none."
  default     = null

  validation {
    condition     = var.data == null ? true : var.data.gib >= 1 && var.data.gib <= 16384
    error_message = "data.gib is a size in GiB: write a number from 1 to 16384."
  }
  validation {
    condition     = var.data == null ? true : var.data.iops >= 3000 && var.data.iops <= 16000
    error_message = "data.iops of gp3 is a number from 3000 to 16000."
  }
  validation {
    condition     = var.data == null ? true : var.data.throughput >= 125 && var.data.throughput <= min(1000, var.data.iops / 4)
    error_message = "data.throughput of gp3 is 125 to 1000 MiB/s, and at most a quarter of data.iops: raise iops or lower throughput."
  }
}

variable "additional_security_group_ids" {
  type        = list(string)
  description = "Security groups that the hosts are members of, too, such as that of the old Redis's clients."
  default     = []
}

variable "kms_key_arn" {
  type        = string
  description = "KMS key of volumes, secrets and bucket."
}

variable "secret_arns" {
  type        = list(string)
  description = "Secrets and parameters that the hosts may read."
  default     = []
}

variable "secret_kms_key_arns" {
  type        = list(string)
  description = "Keys of those secrets that are under another key than kms_key_arn."
  default     = []
}

variable "bucket_prefix_arns" {
  type        = list(string)
  description = "What the hosts may write below, such as arn:aws:s3:::bucket/reports/."
  default     = []
}

variable "tags" {
  type        = map(string)
  description = "Tags of all that is made."
  default     = {}
}
