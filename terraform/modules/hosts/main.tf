# Hosts of one kind: hardened instances that share a role, a security group and a launch template.

locals {
  subnet_ids = toset([for host in values(var.hosts) : host.subnet_id])

  # Of each host: its own AMI while one host after the other moves to a new one.
  ami_ids = { for name in keys(var.hosts) : name => lookup(var.ami_overrides, name, var.ami_id) }
}

# No conditions here: Terraform would read these when it applies, after whatever the conditions name has changed, and until
# then know no zone of a volume, which it would replace for that.
data "aws_subnet" "this" {
  for_each = local.subnet_ids

  id = each.value
}

data "aws_ec2_instance_type" "this" {
  instance_type = var.instance_type
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

resource "aws_launch_template" "this" {
  name_prefix            = "${var.name}-"
  description            = "Hosts ${var.name}"
  image_id               = var.ami_id
  instance_type          = var.instance_type
  key_name               = var.key_name
  ebs_optimized          = true
  update_default_version = true
  tags                   = var.tags

  iam_instance_profile {
    name = aws_iam_instance_profile.this.name
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  monitoring {
    enabled = true
  }

  maintenance_options {
    auto_recovery = "default"
  }

  block_device_mappings {
    device_name = data.aws_ami.this.root_device_name

    ebs {
      volume_type           = "gp3"
      volume_size           = var.root_gib
      encrypted             = true
      kms_key_id            = var.kms_key_arn
      delete_on_termination = true
    }
  }

  dynamic "tag_specifications" {
    for_each = ["volume", "network-interface"]

    content {
      resource_type = tag_specifications.value
      tags          = merge(var.tags, { Name = var.name })
    }
  }

  lifecycle {
    precondition {
      condition     = contains(data.aws_ec2_instance_type.this.supported_architectures, data.aws_ami.this.architecture)
      error_message = "AMI ${var.ami_id} is for ${data.aws_ami.this.architecture}, and ${var.instance_type} runs ${join(", ", data.aws_ec2_instance_type.this.supported_architectures)}: give an AMI of that architecture, or another instance type."
    }
  }
}

resource "aws_placement_group" "this" {
  count = var.spread ? 1 : 0

  name         = var.name
  strategy     = "spread"
  spread_level = "rack"
  tags         = var.tags
}

resource "aws_instance" "this" {
  for_each = var.hosts

  ami                         = local.ami_ids[each.key]
  subnet_id                   = each.value.subnet_id
  vpc_security_group_ids      = concat([aws_security_group.this.id], var.additional_security_group_ids)
  associate_public_ip_address = false
  disable_api_termination     = !contains(var.replaceable, each.key)
  placement_group             = one(aws_placement_group.this[*].name)
  tags                        = merge(var.tags, { Name = "${var.name}-${each.key}", Host = each.key })

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  lifecycle {
    precondition {
      condition     = data.aws_subnet.this[each.value.subnet_id].vpc_id == var.vpc_id
      error_message = "Subnet ${each.value.subnet_id} is in ${data.aws_subnet.this[each.value.subnet_id].vpc_id}, not in ${var.vpc_id}: give subnets of vpc_id."
    }
    precondition {
      condition     = !data.aws_subnet.this[each.value.subnet_id].map_public_ip_on_launch
      error_message = "Subnet ${each.value.subnet_id} gives its hosts public addresses: give a private subnet, or set map_public_ip_on_launch = false there."
    }
  }
}

# Apart from the instance: it outlives it.
resource "aws_ebs_volume" "data" {
  for_each = var.data == null ? {} : var.hosts

  availability_zone = data.aws_subnet.this[each.value.subnet_id].availability_zone
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
