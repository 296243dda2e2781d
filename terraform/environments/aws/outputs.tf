locals {
  mounts = { keydb = "/var/lib/keydb", shadow_proxy = "/var/lib/shadow-proxy", monitoring = "/var/lib/prometheus", loadgen = null }

  of_every_host = {
    for kind, hosts in { keydb = module.keydb.hosts, shadow_proxy = module.shadow_proxy.hosts, monitoring = module.observability.hosts, loadgen = module.loadgen.hosts } : kind => {
      for name, host in hosts : name => merge(
        {
          ansible_host       = var.access.via == "ssh" ? host.address : host.id
          infra_address      = host.address
          infra_name         = "${name}.${var.zone.name}"
          infra_zone         = host.zone
          infra_instance_id  = host.id
          infra_cpus         = host.cpus
          infra_memory_bytes = host.memory_bytes
        },
        { for variable, value in { infra_data_device = host.data_device, infra_data_mount = local.mounts[kind] } : variable => value if host.data_device != null },
      )
    }
  }

  connection = var.access.via == "ssh" ? { ansible_user = var.access.user } : {
    ansible_connection          = "community.aws.aws_ssm"
    ansible_aws_ssm_region      = data.aws_region.current.region
    ansible_aws_ssm_bucket_name = module.storage.transfer_name
  }
}

output "inventory" {
  description = "The inventory for Ansible, as ../../README.md describes it: terraform output -json inventory > inventory.json."
  value = {
    all = {
      vars = merge(local.connection, {
        infra_migration = local.name
        infra_region    = data.aws_region.current.region
        infra_domain    = var.zone.name
        infra_ports     = merge(var.ports, { writer = local.writer_ports[0], admin = tonumber(regex(local.listen, try(local.plan.admin.listen, "127.0.0.1:9400")).port) })
        infra_sources   = module.source.sources
        infra_names     = module.endpoints.names
        infra_bucket    = merge(module.storage.prefixes, { name = module.storage.name, kms_key_arn = aws_kms_key.this.arn })
        infra_secrets = {
          store     = var.passwords.store
          passwords = merge(module.secrets.passwords, { for name, arn in var.source_secrets : name => { use = arn, accept = [arn] } })
        }
        infra_targets = {
          for target, of in local.targets : target => {
            name        = of.host
            writer_port = of.writer_port
            any_port    = var.ports.any
            nodes       = [for name, host in module.keydb.hosts : name if host.target == target]
            primary     = "${target}-1"
            pinned      = local.pinned
            shards      = of.shards
            slots       = lookup(var.cluster.target, target, null)
          }
        }
      })
      children = {
        keydb = {
          hosts = {
            for name, host in module.keydb.hosts : name => merge(local.of_every_host.keydb[name], {
              infra_target          = host.target
              infra_initial_role    = host.role
              infra_maxmemory_bytes = host.maxmemory_bytes
            })
          }
        }
        sentinel = {
          children = { for group in local.active_active || local.keydb_cluster ? [] : ["keydb"] : group => {} }
          hosts    = { for name in local.monitoring_sentinel ? keys(module.observability.hosts) : [] : name => {} }
        }
        haproxy = { children = { for group in local.keydb_cluster ? [] : ["keydb"] : group => {} } }
        shadow_proxy = {
          hosts = {
            for name, host in module.shadow_proxy.hosts : name => merge(local.of_every_host.shadow_proxy[name], {
              infra_shard        = host.shard
              infra_initial_role = host.role
              infra_listen_port  = host.listen_port
              infra_admin_port   = host.admin_port
            })
          }
        }
        monitoring = { hosts = local.of_every_host.monitoring }
        loadgen    = { hosts = local.of_every_host.loadgen }
      }
    }
  }
}

output "names" {
  description = "The names that applications use, and where each leads to now."
  value       = module.endpoints.names
}

output "paths" {
  description = "Every path that the security groups let through: what it is for, by \"from → to:port\"."
  value       = module.paths.open
}

output "source_access" {
  description = "What the old Redis must let in, where source_client_security_group_ids does not see to it: nothing of it is changed here."
  value = length(var.source_client_security_group_ids) > 0 ? {} : {
    for name, source in module.source.sources : name => local.clustered ? "every node of the cluster of ${source.host}:${source.port} from ${module.shadow_proxy.security_group_id} (proxies) and ${module.observability.security_group_id} (exporter)" : "${source.host}:${source.port} from ${module.shadow_proxy.security_group_id} (proxies) and ${module.observability.security_group_id} (exporter)"
  }
}

output "shards" {
  description = "The shards of a plan with cluster, by name: target, port of the proxy. shadow-proxy --plan FILE --check must name the same ones."
  value       = { for name, shard in local.shards_by_slot : name => { target = shard.target, port = tonumber(local.shards[name].listen.port) } }
}

output "cost" {
  description = "What this costs a month, at the prices given: { currency, month, parts, without_price }. month is null while a price is missing."
  value       = local.cost
}
