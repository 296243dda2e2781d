# What AWS has already, whatever the plan says: a host that is in the plan no more would be deleted, and its data volume with it. The state
# shows such a host to no expression, so AWS is asked. Its tags say the name that it was made with.

# The name of the kind at first: hosts are found by it when it changes.
resource "terraform_data" "made_as" {
  input            = var.name
  triggers_replace = !var.protect

  lifecycle {
    ignore_changes = [input]
  }
}

# The name of each host at first: a moved block takes it along.
resource "terraform_data" "host" {
  for_each = var.hosts

  input = each.key

  lifecycle {
    ignore_changes = [input]
  }
}

locals {
  # input, not output: it is known before it is made.
  names = distinct([var.name, terraform_data.made_as.input])
}

data "aws_instances" "standing" {
  instance_state_names = ["pending", "running", "stopping", "stopped"]

  filter {
    name   = "tag:Name"
    values = [for name in local.names : "${name}-*"]
  }
}

data "aws_instance" "standing" {
  for_each = toset(data.aws_instances.standing.ids)

  instance_id = each.key
}

data "aws_ebs_volumes" "standing" {
  filter {
    name   = "tag:Name"
    values = [for name in local.names : "${name}-*-data"]
  }
}

data "aws_ebs_volume" "standing" {
  for_each = toset(data.aws_ebs_volumes.standing.ids)

  filter {
    name   = "volume-id"
    values = [each.key]
  }
}

locals {
  # By host. The name is compared whole: another migration's may begin with this one.
  instances = { for instance in values(data.aws_instance.standing) : instance.tags.Host => instance... if contains([for name in local.names : "${name}-${lookup(instance.tags, "Host", "")}"], lookup(instance.tags, "Name", "")) }
  volumes   = { for volume in values(data.aws_ebs_volume.standing) : volume.tags.Host => volume... if contains([for name in local.names : "${name}-${lookup(volume.tags, "Host", "")}-data"], lookup(volume.tags, "Name", "")) }

  # The name that AWS has for each host: an earlier one, where a moved block has just changed it.
  found = setunion(keys(local.instances), keys(local.volumes))
  was   = { for name in keys(var.hosts) : name => !contains(local.found, name) && contains(local.found, terraform_data.host[name].input) && !contains(keys(var.hosts), terraform_data.host[name].input) ? terraform_data.host[name].input : name }
  moved = [for name, before in local.was : name if name != before]

  going_hosts   = setsubtract(keys(local.instances), values(local.was))
  going_volumes = setsubtract(keys(local.volumes), var.data == null ? [] : values(local.was))
  going = {
    for name in setunion(local.going_hosts, local.going_volumes) : name => {
      instances = contains(local.going_hosts, name) ? local.instances[name][*].id : []
      gib       = contains(local.going_volumes, name) ? sum(local.volumes[name][*].size) : 0
      protected = anytrue(lookup(local.instances, name, [])[*].disable_api_termination)
    }
  }
  going_against_protection = { for name, host in local.going : name => host if host.protected || (var.protect && !contains(var.replaceable, name)) }
  going_each               = [for name, host in local.going_against_protection : "${name} (${join(", ", concat(host.instances, host.gib > 0 ? ["${host.gib} GiB of data"] : []))})"]
}

resource "terraform_data" "standing" {
  lifecycle {
    precondition {
      condition     = length(local.going_against_protection) == 0
      error_message = "${length(flatten(values(local.going_against_protection)[*].instances))} hosts and ${sum(concat([0], values(local.going_against_protection)[*].gib))} GiB of data would be deleted: ${join("; ", local.going_each)}. AWS has them, and the plan has them no more: another name of a target or shard, or fewer nodes or proxies. Undo that change; or keep hosts and data under the new name by moved blocks (terraform/README.md); or, if they may go, apply with their names in replaceable first, then with this change, too."
    }
    precondition {
      condition     = !var.protect || terraform_data.made_as.output == var.name
      error_message = "The hosts were made as ${terraform_data.made_as.output}, and would be ${var.name}: the plan's name, or plan_file, has changed. Roles, security groups and passwords would be replaced under running hosts. Undo that change; or apply with protect = false first."
    }
  }
}

# A host that moved without its volume would be given an empty one. What is yet to be made has no ID, and Terraform refuses a count that it
# does not know; it is 0 otherwise. So name both in moved blocks.
resource "terraform_data" "moved_with_instance_and_volume" {
  count = 0 * length(distinct(flatten([for name in local.moved : [aws_instance.this[name].id, [for volume in [for each_name, volume in aws_ebs_volume.data : volume if each_name == name] : volume.id]]])))
}
