variable "name" {
  type        = string
  description = "Name of the migration, such as checkout-cache: begins the names of all that is made."
}

variable "vpc_id" {
  type        = string
  description = "VPC in which the names hold."
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets of the load balancer, one a zone; only with via = nlb."
  default     = []
}

variable "zone" {
  type        = object({ name = string, id = optional(string) })
  description = "Private Route 53 zone: its name, and its ID where it is there already; it is made otherwise."

  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z][a-z0-9-]*[a-z0-9]$", var.zone.name))
    error_message = "zone.name is a domain of your own, in small letters and without a dot at the end: write cache.internal."
  }
  validation {
    condition     = var.zone.id == null ? true : can(regex("^Z[A-Z0-9]+$", var.zone.id))
    error_message = "zone.id is the ID of a hosted zone: write Z0123456789ABCDEFGHIJ, or leave it out, and the zone is made."
  }
}

variable "via" {
  type        = string
  description = "dns: names are records that are changed. nlb: names are those of a network load balancer."
  default     = "dns"

  validation {
    condition     = contains(["dns", "nlb"], var.via)
    error_message = "via is dns (records that are changed) or nlb (a network load balancer)."
  }
}

variable "ttl" {
  type        = number
  description = "Seconds for which clients may remember a record."
  default     = 10

  validation {
    condition     = var.ttl >= 1 && var.ttl <= 300
    error_message = "ttl is a number of seconds from 1 to 300: a client that remembers for longer goes on where its name no longer leads to."
  }
}

variable "addresses" {
  type        = map(list(string))
  description = "Addresses of hosts and of targets, by name within the zone."
  default     = {}
}

variable "destinations" {
  type = map(object({
    source = object({ host = string, port = number, kind = string })
    proxy  = object({ addresses = list(string), port = number, admin_port = number })
    target = object({ addresses = list(string), port = number })
  }))
  description = "Of each shard: where its source, its proxies (one, or two of which one serves) and its target are."
}

variable "names" {
  type        = map(object({ shard = string, to = string, port = optional(number) }))
  description = "Names of applications: the shard, and where it leads to now: source, proxy or target. With via = nlb its port; default: that of the proxy."
  default     = {}

  validation {
    condition     = alltrue([for choice in values(var.names) : contains(["source", "proxy", "target"], choice.to)])
    error_message = "A name leads to source (the old Redis), proxy or target (KeyDB, after complete): write one of them."
  }
  validation {
    condition     = alltrue([for name in keys(var.names) : can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", name))])
    error_message = "An application's name is a DNS label: small letters, digits and dashes, at most 63."
  }
  validation {
    condition     = alltrue([for choice in values(var.names) : choice.port == null ? true : choice.port >= 1 && choice.port <= 65535])
    error_message = "A name's port is a number from 1 to 65535."
  }
}

variable "protect" {
  type        = bool
  description = "Whether AWS refuses to delete the load balancer, and a zone that has records of others. Before terraform destroy: apply with false."
  default     = true
}

variable "alarm_topic_arns" {
  type        = list(string)
  description = "SNS topics notified when the server of a name cannot be reached."
  default     = []
}

variable "tags" {
  type        = map(string)
  description = "Tags of all that is made."
  default     = {}
}
