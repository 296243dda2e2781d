# Hosts of one kind: hardened instances that share a role and a security group.

locals {
  # A host stays where it stands, while that is offered; a volume without a host waits for one in its zone. Another host goes
  # where var.hosts says.
  subnets = {
    for name, host in var.hosts : name => concat(
      [for instance in lookup(local.instances, local.was[name], []) : instance.subnet_id if contains(var.subnet_ids, instance.subnet_id)],
      [for id in var.subnet_ids : id if !contains(keys(local.instances), local.was[name]) && contains(lookup(local.volumes, local.was[name], [])[*].availability_zone, data.aws_subnet.this[id].availability_zone)],
      [host.subnet_id],
    )[0]
  }

  # Racks: of those that var.hosts names, and of those that a host is in. AWS deletes no placement group that has a host.
  groups      = { for name, host in var.hosts : name => "${var.name}-${host.group}" if host.group != null }
  groups_used = distinct(flatten([for instances in values(local.instances) : instances[*].placement_group]))
}

# No conditions here: Terraform would read these when it applies, after whatever the conditions name has changed, and until
# then know no zone of a volume, which it would replace for that.
data "aws_subnet" "this" {
  for_each = toset(concat(var.subnet_ids, [for host in values(var.hosts) : host.subnet_id]))

  id = each.value
}

data "aws_ec2_instance_type" "this" {
  instance_type = var.instance_type
}

# A host keeps its type until it is replaced.
data "aws_ec2_instance_type" "of" {
  for_each = toset(concat([var.instance_type], values(aws_instance.this)[*].instance_type))

  instance_type = each.value
}

data "aws_ami" "this" {
  include_deprecated = true

  filter {
    name   = "image-id"
    values = [var.ami_id]
  }
}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-"
  description = "Hosts ${var.name}: what may reach them, and what they may reach, are the paths given by name"
  vpc_id      = var.vpc_id
  tags        = merge(var.tags, { Name = var.name })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_placement_group" "of" {
  for_each = toset(concat(values(local.groups), [for group in local.groups_used : group if anytrue([for name in local.names : startswith(group, "${name}-")])]))

  name         = each.key
  strategy     = "spread"
  spread_level = "rack"
  tags         = var.tags
}

# The one group of all hosts, that earlier releases made: there while a host is in it.
resource "aws_placement_group" "this" {
  count = length(setintersection(local.groups_used, local.names)) > 0 ? 1 : 0

  name         = var.name
  strategy     = "spread"
  spread_level = "rack"
  tags         = var.tags

  lifecycle {
    ignore_changes = [name]
  }
}

# Raising the number of a host in var.replace replaces this host, and no other.
resource "terraform_data" "replace" {
  for_each = var.hosts

  input = lookup(var.replace, each.key, 0)
}

# Where each host was made. Another subnet replaces the host and its data volume, so the record keeps what it said first: what
# holds now is compared with it. It is written anew when a host may be ended, and when it may no longer be.
resource "terraform_data" "placement" {
  for_each = var.hosts

  input            = { subnet_id = local.subnets[each.key] }
  triggers_replace = !var.protect || contains(var.replaceable, each.key)

  lifecycle {
    ignore_changes = [input]
  }
}

# Not from a launch template: each change of it is a new version of it, and a new version replaces all instances at once.
resource "aws_instance" "this" {
  for_each = var.hosts

  ami                         = var.ami_id
  instance_type               = var.instance_type
  key_name                    = var.key_name
  ebs_optimized               = true
  monitoring                  = true
  iam_instance_profile        = aws_iam_instance_profile.this.name
  subnet_id                   = local.subnets[each.key]
  vpc_security_group_ids      = concat([aws_security_group.this.id], var.additional_security_group_ids)
  associate_public_ip_address = false
  disable_api_termination     = var.protect && !contains(var.replaceable, each.key)
  force_destroy               = !var.protect || contains(var.replaceable, each.key)
  placement_group             = each.value.group == null ? null : aws_placement_group.of[local.groups[each.key]].name
  tags                        = merge(var.tags, { Name = "${var.name}-${each.key}", Host = each.key })

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  maintenance_options {
    auto_recovery = "default"
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = var.root_gib
    encrypted             = true
    kms_key_id            = var.kms_key_arn
    delete_on_termination = true
    tags                  = merge(var.tags, { Name = "${var.name}-${each.key}" })
  }

  lifecycle {
    # A host keeps what it was made with. A new image, key pair, placement group or root volume would replace every host at
    # once, and a new instance type would stop every host at once: var.replace takes one host after the other.
    ignore_changes       = [ami, instance_type, key_name, placement_group, root_block_device]
    replace_triggered_by = [terraform_data.replace[each.key]]

    precondition {
      condition     = !var.protect || contains(var.replaceable, each.key) || terraform_data.placement[each.key].output.subnet_id == local.subnets[each.key]
      error_message = "${each.key} would be replaced, and its data volume with it: it was made in ${terraform_data.placement[each.key].output.subnet_id}, and would be in ${local.subnets[each.key]}. Undo the change of subnet_ids; or, if its data may go, apply with its name in replaceable first."
    }
    precondition {
      condition     = contains(data.aws_ec2_instance_type.this.supported_architectures, data.aws_ami.this.architecture)
      error_message = "AMI ${var.ami_id} is for ${data.aws_ami.this.architecture}, and ${var.instance_type} runs ${join(", ", data.aws_ec2_instance_type.this.supported_architectures)}: give an AMI of that architecture, or another instance type."
    }
    precondition {
      condition     = data.aws_subnet.this[local.subnets[each.key]].vpc_id == var.vpc_id
      error_message = "Subnet ${local.subnets[each.key]} is in ${data.aws_subnet.this[local.subnets[each.key]].vpc_id}, not in ${var.vpc_id}: give subnets of vpc_id."
    }
    precondition {
      condition     = !data.aws_subnet.this[local.subnets[each.key]].map_public_ip_on_launch
      error_message = "Subnet ${local.subnets[each.key]} gives its hosts public addresses: give a private subnet, or set map_public_ip_on_launch = false there."
    }
  }
}

# Apart from the instance: it outlives it.
resource "aws_ebs_volume" "data" {
  for_each = var.data == null ? {} : var.hosts

  availability_zone = data.aws_subnet.this[local.subnets[each.key]].availability_zone
  type              = "gp3"
  size              = var.data.gib
  iops              = var.data.iops
  throughput        = var.data.throughput
  encrypted         = true
  kms_key_id        = var.kms_key_arn
  final_snapshot    = true
  tags              = merge(var.tags, { Name = "${var.name}-${each.key}-data", Host = each.key })
}

resource "aws_volume_attachment" "data" {
  for_each = aws_ebs_volume.data

  device_name                    = "/dev/sdf"
  instance_id                    = aws_instance.this[each.key].id
  volume_id                      = each.value.id
  stop_instance_before_detaching = true
}
