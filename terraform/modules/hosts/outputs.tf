output "hosts" {
  description = "The hosts by name: id, address, zone, cpus, memory_bytes, and data_device (null without a data volume)."
  value = {
    for name, host in aws_instance.this : name => {
      id           = host.id
      address      = host.private_ip
      zone         = data.aws_subnet.this[local.subnets[name]].availability_zone
      cpus         = data.aws_ec2_instance_type.of[host.instance_type].default_vcpus
      memory_bytes = data.aws_ec2_instance_type.of[host.instance_type].memory_size * 1024 * 1024
      # As udev names it on Nitro: the volume's ID without its dash.
      data_device = var.data == null ? null : "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${replace(aws_ebs_volume.data[name].id, "-", "")}"
    }
  }
}

output "zones" {
  description = "Availability zones that have a host."
  value       = distinct([for subnet_id in values(local.subnets) : data.aws_subnet.this[subnet_id].availability_zone])
}

output "memory_bytes" {
  description = "Memory of a host of instance_type. A host that was made with another type has its own until it is replaced."
  value       = data.aws_ec2_instance_type.this.memory_size * 1024 * 1024
}

output "security_group_id" {
  description = "Security group of the hosts. It has no rule of its own: paths make them."
  value       = aws_security_group.this.id
}

output "role_name" {
  description = "IAM role of the hosts."
  value       = aws_iam_role.this.name
}

output "billed" {
  description = "What costs, for a summary: instances by type, gp3 GiB, provisioned IOPS and MiB/s beyond what is included."
  value = {
    instances  = { (var.instance_type) = length(var.hosts) }
    gib        = length(var.hosts) * (var.root_gib + (var.data == null ? 0 : var.data.gib))
    iops       = length(var.hosts) * (var.data == null ? 0 : var.data.iops - 3000)
    throughput = length(var.hosts) * (var.data == null ? 0 : var.data.throughput - 125)
  }
}

output "standing" {
  description = "Subnets of the hosts that AWS has, by name; also of hosts that are to go."
  value       = { for name, instances in local.instances : name => instances[0].subnet_id }
}
