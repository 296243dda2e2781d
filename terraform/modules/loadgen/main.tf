# Load-test hosts. None at all while they are switched off.

locals {
  hosts = { for n in range(var.hosts) : "loadgen-${n + 1}" => { subnet_id = var.base.subnet_ids[n % length(var.base.subnet_ids)] } }
}

module "hosts" {
  source = "../hosts"
  count  = var.hosts == 0 ? 0 : 1

  name               = "${var.name}-loadgen"
  hosts              = local.hosts
  instance_type      = var.instance_type
  secret_arns        = var.secret_arns
  bucket_prefix_arns = var.bucket_prefix_arns

  vpc_id          = var.base.vpc_id
  subnet_ids      = var.base.subnet_ids
  ami_id          = var.base.ami_id
  replace         = { for host, number in var.base.replace : host => number if contains(keys(local.hosts), host) }
  key_name        = var.base.key_name
  session_manager = var.base.session_manager
  protect         = false
  kms_key_arn     = var.base.kms_key_arn
  tags            = var.base.tags
}
