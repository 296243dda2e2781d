variable "groups" {
  type        = map(string)
  description = "Security groups whose rules these are, by the name that paths use."
}

variable "paths" {
  type        = map(object({ from = string, to = string, ports = set(number) }))
  description = "TCP paths by name. An end is a name of groups, the ID of a security group that is not ours (sg-…), a range (10.0.0.0/8), or, as an end, a prefix list (pl-…)."

  validation {
    condition     = alltrue([for path in values(var.paths) : !endswith(path.from, "/0")])
    error_message = "A path from 0.0.0.0/0 lets the whole world in: name the security group, or the private range, that it is for."
  }
  validation {
    condition     = alltrue(flatten([for path in values(var.paths) : [for port in path.ports : port >= 1 && port <= 65535]]))
    error_message = "A port is a number from 1 to 65535."
  }
  validation {
    condition     = alltrue([for name in keys(var.paths) : can(regex("^[A-Za-z0-9 ._:/()#,@+=&;{}!$*-]{1,255}$", name))])
    error_message = "A path's name becomes the rule's description: letters, digits, spaces and ._-:/()#,@+=&;{}!$*, at most 255."
  }
}

variable "tags" {
  type        = map(string)
  description = "Tags of the rules."
  default     = {}
}
