variable "region" {
  type        = string
  description = "AWS region of the old Redis."
}

variable "vpc_id" {
  type        = string
  description = "VPC of the old Redis and its clients."
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

variable "redis_instance_id" {
  type        = string
  description = "EC2 instance of the old Redis."
}

variable "zone_id" {
  type        = string
  description = "Private zone cache.internal, which is there already."
}

variable "source_client_security_group_ids" {
  type        = list(string)
  description = "Security groups whose members the old Redis lets in."
}

variable "redis_secret_arn" {
  type        = string
  description = "Secret with the password of the proxies' user at the old Redis."
}

variable "load_test" {
  type        = bool
  description = "Whether load-test hosts are on."
  default     = false
}
