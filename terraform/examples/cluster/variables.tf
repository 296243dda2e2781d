variable "region" {
  type        = string
  description = "AWS region of the Redis Cluster."
}

variable "vpc_id" {
  type        = string
  description = "VPC of the Redis Cluster and its clients."
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets of two or more availability zones."
}

variable "ami_id" {
  type        = string
  description = "AMI of all hosts: Debian 12 or 13, Ubuntu 22.04 or 24.04; for x86-64."
}

variable "client_security_group_ids" {
  type        = set(string)
  description = "Security groups of the applications."
}

variable "bucket_name" {
  type        = string
  description = "Name of the bucket of reports and backups."
}

variable "redis_version" {
  type        = string
  description = "Version of the Redis Cluster: redis_version of INFO server."
}

variable "redis_maxmemory" {
  type        = number
  description = "What each master of the Redis Cluster may take, in bytes: CONFIG GET maxmemory."
}

variable "redis_secret_arn" {
  type        = string
  description = "ARN of the secret with the password of the proxies at the Redis Cluster."
}

variable "leave_the_proxies" {
  type        = bool
  description = "Whether applications may connect to the KeyDB cluster: after complete."
  default     = false
}
