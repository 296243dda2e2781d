variable "directory" {
  type        = string
  description = "Folder of the plan, the proxy's state and the log. It must not exist before; destroy deletes it."
  default     = "./local-migration"

  validation {
    condition     = trimspace(var.directory) != ""
    error_message = "directory is the path of a folder that is not there yet: write ./local-migration."
  }
}

variable "redis_port" {
  type        = number
  description = "Port of the old Redis, which is started here; null: a free one."
  default     = null

  validation {
    condition     = var.redis_port == null ? true : var.redis_port >= 1 && var.redis_port <= 65535
    error_message = "redis_port is a number from 1 to 65535, or null for a free one."
  }
}

variable "keydb_port" {
  type        = number
  description = "Port of KeyDB; null: a free one."
  default     = null

  validation {
    condition     = var.keydb_port == null ? true : var.keydb_port >= 1 && var.keydb_port <= 65535
    error_message = "keydb_port is a number from 1 to 65535, or null for a free one."
  }
}

variable "proxy_port" {
  type        = number
  description = "Port where clients connect to the proxy; null: a free one."
  default     = null

  validation {
    condition     = var.proxy_port == null ? true : var.proxy_port >= 1 && var.proxy_port <= 65535
    error_message = "proxy_port is a number from 1 to 65535, or null for a free one."
  }
}

variable "admin_port" {
  type        = number
  description = "Port of the proxy's admin HTTP, which shadow-compare asks; null: a free one."
  default     = null

  validation {
    condition     = var.admin_port == null ? true : var.admin_port >= 1 && var.admin_port <= 65535
    error_message = "admin_port is a number from 1 to 65535, or null for a free one."
  }
}
