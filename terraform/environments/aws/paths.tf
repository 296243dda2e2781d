# Who may talk to whom, and at which port. What is not here is closed.

locals {
  groups = merge(
    {
      keydb        = module.keydb.security_group_id
      shadow_proxy = module.shadow_proxy.security_group_id
      monitoring   = module.observability.security_group_id
    },
    var.loadgen.hosts == 0 ? {} : { loadgen = module.loadgen.security_group_id },
    var.names_via == "nlb" ? { names = module.endpoints.security_group_id } : {},
  )
  clients = merge({ for id in var.client_security_group_ids : id => id }, var.loadgen.hosts == 0 ? {} : { loadgen = "loadgen" })
  # Applications reach KeyDB past the proxy once a name of theirs leads there, and not before.
  served = var.cluster.clients_reach_keydb || anytrue([for name in values(local.names) : name.to == "target"])
  doors  = concat(keys(local.clients), var.names_via == "nlb" ? ["names"] : [])
  # No load balancer leads to nodes of a cluster: clients find them by themselves.
  keydb_doors = [for door in local.doors : door if !(local.clustered && door == "names") && (local.served || !startswith(door, "sg-"))]

  # Of two nodes none is a majority: then the monitoring host has a Sentinel, too.
  monitoring_sentinel = !local.active_active && !local.keydb_cluster && var.keydb.nodes_per_target % 2 == 0

  listen_ports = toset(values(module.shadow_proxy.hosts)[*].listen_port)
  admin_ports  = toset(values(module.shadow_proxy.hosts)[*].admin_port)
  # Where the proxies answer as Sentinels, if the plan has them do so.
  asked_ports  = can(local.plan.sentinel.listen) ? [tonumber(coalesce(regex(local.url, local.plan.sentinel.listen).port, "6379"))] : []
  served_ports = toset(local.keydb_cluster ? [var.ports.keydb] : concat(local.writer_ports, [var.ports.any]))
}

module "paths" {
  source = "../../modules/paths"

  groups = local.groups
  tags   = local.tags

  paths = merge(
    {
      (local.keydb_cluster ? "nodes replicate" : "nodes replicate, and HAProxy finds the writer") = { from = "keydb", to = "keydb", ports = setunion(local.served_ports, [var.ports.keydb]) }
      "proxies feed KeyDB"                                                                        = { from = "shadow_proxy", to = "keydb", ports = toset(local.writer_ports) }
      "monitoring scrapes KeyDB hosts"                                                            = { from = "monitoring", to = "keydb", ports = concat([var.ports.node_exporter, var.ports.redis_exporter, var.ports.keydb], local.keydb_cluster ? [] : [var.ports.haproxy]) }
      "monitoring scrapes proxies"                                                                = { from = "monitoring", to = "shadow_proxy", ports = setunion(local.admin_ports, [var.ports.node_exporter]) }
    },
    local.keydb_cluster ? { "the bus of the cluster" = { from = "keydb", to = "keydb", ports = [var.ports.keydb + 10000] } } : {},
    local.active_active || local.keydb_cluster ? {} : { "Sentinels agree, and nodes ask them" = { from = "keydb", to = "keydb", ports = [var.ports.sentinel] } },
    !local.monitoring_sentinel ? {} : {
      "the third Sentinel asks the others" = { from = "monitoring", to = "keydb", ports = [var.ports.sentinel, var.ports.keydb] }
      "the others ask the third Sentinel"  = { from = "keydb", to = "monitoring", ports = [var.ports.sentinel] }
    },
    { for door in local.doors : "${door} to the proxies" => { from = door, to = "shadow_proxy", ports = local.listen_ports } },
    # Clients ask each proxy by its own address, past a load balancer.
    { for client in keys(local.clients) : "${client} to the Sentinels of the proxies" => { from = client, to = "shadow_proxy", ports = local.asked_ports } if length(local.asked_ports) > 0 },
    { for door in local.keydb_doors : "${door} to KeyDB" => { from = door, to = "keydb", ports = local.served_ports } },
    var.names_via != "nlb" ? {} : { "the load balancer asks which proxy serves" = { from = "names", to = "shadow_proxy", ports = local.admin_ports } },
    var.names_via != "nlb" ? {} : { for client in keys(local.clients) : "${client} to the names" => { from = client, to = "names", ports = toset(values(module.endpoints.ports)) } },
    var.loadgen.hosts == 0 ? {} : { "monitoring scrapes load-test hosts" = { from = "monitoring", to = "loadgen", ports = [var.ports.node_exporter] } },
    { for name, source in local.to_sources : "${name}: proxies to the source" => merge(source, { from = "shadow_proxy" }) },
    { for name, source in local.to_sources : "${name}: exporter to the source" => merge(source, { from = "monitoring" }) },
    var.names_via != "nlb" || local.clustered ? {} : { for name, source in local.to_sources : "${name}: names to the source" => merge(source, { from = "names" }) },
    { for group in ["keydb", "shadow_proxy", "monitoring", "loadgen"] : "${group} fetches packages and speaks to AWS" => { from = group, to = var.internet, ports = [80, 443] } if contains(keys(local.groups), group) },
    var.access.via != "ssh" ? {} : merge([
      for from in var.access.from : { for group in ["keydb", "shadow_proxy", "monitoring", "loadgen"] : "ssh from ${from} to ${group}" => { from = from, to = group, ports = [22] } if contains(keys(local.groups), group) }
    ]...),
    var.access.via != "ssh" ? {} : { for from in var.access.from : "dashboards and alerts for ${from}" => { from = from, to = "monitoring", ports = [var.ports.grafana, var.ports.alertmanager] } },
    # Prometheus and Alertmanager are on one host. Whom else it notifies is given.
    { for name, path in var.monitoring.alerts_to : "alerts to ${name}" => merge(path, { from = "monitoring" }) },
  )
}

data "aws_vpc" "this" {
  id = var.vpc_id
}

locals {
  # Behind Sentinels are servers whose ports they tell. The nodes of a cluster have the ports of those that the plan names.
  source_ports = merge(
    { for name, source in module.source.sources : name => source.kind == "sentinel" ? [source.port, 6379] : [source.port] if !local.clustered },
    !local.clustered ? {} : { cluster = distinct([for port in regexall(":([0-9]+)(?:,|/|$)", local.cluster_source) : tonumber(port[0])]) },
  )

  # A source that is known by name may change its address: then it is somewhere in the VPC, whose ranges may be several, or
  # in ranges that are given.
  vpc_ranges = toset(concat([data.aws_vpc.this.cidr_block], [for association in data.aws_vpc.this.cidr_block_associations : association.cidr_block if association.state == "associated"]))
  source_ranges = merge(
    {
      for name, source in module.source.sources : name => (
        source.kind != "sentinel" && can(cidrhost("${source.host}/32", 0)) ? toset(["${source.host}/32"]) : coalesce(try(var.sources[name].ranges, null), local.vpc_ranges)
      ) if !local.clustered
    },
    # The plan names some nodes; the others are where these are.
    !local.clustered ? {} : { cluster = coalesce(try(var.sources.cluster.ranges, null), local.vpc_ranges) },
  )
  to_sources = merge([
    for name, ranges in local.source_ranges : { for range in ranges : length(ranges) == 1 ? name : "${name} in ${range}" => { to = range, ports = local.source_ports[name] } }
  ]...)
}
