variable "prefix" {
  type        = string
  description = "Begins the names of the secrets: checkout-cache gives checkout-cache/keydb-app/1."

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9_.-]*$", var.prefix))
    error_message = "prefix takes letters, digits, dot, dash and underscore, the first a letter or digit."
  }
}

variable "store" {
  type        = string
  description = "Where passwords are kept: secretsmanager, or ssm (Parameter Store)."
  default     = "secretsmanager"

  validation {
    condition     = contains(["secretsmanager", "ssm"], var.store)
    error_message = "store is secretsmanager or ssm (Parameter Store)."
  }
}

variable "generate" {
  type        = bool
  description = "Whether Terraform draws the values. Where false, the secrets are made empty, and you put the values in."
  default     = true
}

variable "in_state" {
  type        = set(string)
  description = "Generations, such as keydb-app/1, whose values Terraform keeps in its state, or all: those of an environment that was made so. The values of all others are write-only: sent to AWS, and in no plan and no state. A generation that is in the state stays here until it is dropped: without its name here, it would get a new value."
  default     = []
}

variable "passwords" {
  type        = map(object({ use = string, accept = set(string) }))
  description = "Generations of each password: use is the one to log in with, accept are those that servers take."

  validation {
    condition     = alltrue([for rotation in values(var.passwords) : contains(rotation.accept, rotation.use)])
    error_message = "A password that is used must be accepted first: add the generation in use to accept, apply, run Ansible, and only then use it."
  }
  validation {
    condition     = alltrue([for rotation in values(var.passwords) : length(rotation.accept) <= 2])
    error_message = "A server takes two generations of a password at most: drop the old one before you add another."
  }
  validation {
    condition     = alltrue(flatten([for name, rotation in var.passwords : [for part in concat([name], tolist(rotation.accept)) : can(regex("^[A-Za-z0-9][A-Za-z0-9_.-]*$", part))]]))
    error_message = "Names of passwords and of generations take letters, digits, dot, dash and underscore, the first a letter or digit."
  }
}

variable "kms_key_arn" {
  type        = string
  description = "KMS key of the secrets."
}

variable "recovery_days" {
  type        = number
  description = "Days for which Secrets Manager keeps what was deleted; 0: none."
  default     = 7

  validation {
    condition     = var.recovery_days == 0 || (var.recovery_days >= 7 && var.recovery_days <= 30)
    error_message = "recovery_days is 0, or a number from 7 to 30."
  }
}

variable "tags" {
  type        = map(string)
  description = "Tags of the secrets."
  default     = {}
}
