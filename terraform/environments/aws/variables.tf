variable "plan_file" {
  type        = string
  description = "Path of the migration plan (migration.yaml)."

  validation {
    condition     = fileexists(var.plan_file)
    error_message = "There is no plan ${var.plan_file}: copy migration.example.yaml to migration.yaml, change it, and give its path."
  }
  validation {
    condition     = !fileexists(var.plan_file) || can(yamldecode(file(var.plan_file)))
    error_message = "The plan is no YAML: shadow-proxy --plan FILE --check says where."
  }
  validation {
    condition     = !can(yamldecode(file(var.plan_file))) || try(yamldecode(file(var.plan_file)).version == 1 && (can(yamldecode(file(var.plan_file)).cluster.source) || length(try(yamldecode(file(var.plan_file)).shards, [])) > 0), false)
    error_message = "The plan has no version: 1, or neither shards nor a cluster: shadow-proxy --plan FILE --check says what is missing."
  }
  validation {
    condition = alltrue([
      for shard in try(yamldecode(file(var.plan_file)).shards, []) : alltrue([
        can(shard.name),
        can(regex("^rediss?(\\+sentinel)?://", try(shard.source.url, shard.source))),
        can(regex("^rediss?://(.*@)?[^@/:,]+(:[0-9]+)?(/.*)?$", try(shard.target.url, shard.target))),
        can(regex("^rediss?://[^@/:,]+(:[0-9]+)?/?$", shard.listen)),
        can(regex("^.+:[0-9]+$", try(shard.admin.listen, "127.0.0.1:9400"))),
      ])
    ])
    error_message = "A shard of the plan cannot be read: each needs name, listen, source and a target redis://name:port (no Sentinel: HAProxy finds the writer). shadow-proxy --plan FILE --check says more."
  }
  validation {
    condition = alltrue([
      for cluster in try([yamldecode(file(var.plan_file)).cluster], []) : alltrue([
        can(regex("^rediss?://(.*@)?[^@/:,]+:[0-9]+(,[^@/:,]+:[0-9]+)*(/.*)?$", try(cluster.source.url, cluster.source))),
        can(regex("^rediss?://(.*@)?[^@/:,]+:[0-9]+(,[^@/:,]+:[0-9]+)*(/.*)?$", try(cluster.target.url, cluster.target))),
        can(regex("^rediss?://[^@/:,]+:[0-9]+/?$", cluster.listen)),
        alltrue([for cut in try(cluster.cuts, []) : can(regex("^[0-9]+$", cut)) && try(tonumber(cut) < 16384, false)]),
        !can(yamldecode(file(var.plan_file)).shards),
      ])
    ])
    error_message = "The plan's cluster cannot be read: it needs source and target, each redis://host:port,host:port, listen, and cuts that are slots. It replaces shards: leave them out. shadow-proxy --plan FILE --check says more."
  }
  validation {
    condition     = !can(yamldecode(file(var.plan_file)).name) || can(regex("^[A-Za-z0-9][A-Za-z0-9-]{0,25}$", yamldecode(file(var.plan_file)).name))
    error_message = "The plan's name begins the names of all that is made in AWS: letters, digits and dashes, at most 26, the first a letter or digit."
  }
}

variable "vpc_id" {
  type        = string
  description = "VPC of the old Redis and its clients."

  validation {
    condition     = can(regex("^vpc-[0-9a-f]+$", var.vpc_id))
    error_message = "vpc_id is the ID of a VPC: write vpc-0123456789abcdef0, as aws ec2 describe-vpcs shows it."
  }
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets, one of each availability zone; hosts are dealt out over them in this order."

  validation {
    condition     = length(var.subnet_ids) > 0 && alltrue([for id in var.subnet_ids : can(regex("^subnet-[0-9a-f]+$", id))])
    error_message = "subnet_ids are IDs of private subnets, one of each availability zone: write [\"subnet-0123456789abcdef0\", …]."
  }
  validation {
    condition     = length(distinct(var.subnet_ids)) == length(var.subnet_ids)
    error_message = "A subnet is named twice in subnet_ids: name each once."
  }
}

variable "ami_id" {
  type        = string
  description = "AMI of all hosts (Debian 12 or 13, Ubuntu 22.04 or 24.04; for x86-64, as the instance types are by default), pinned."

  validation {
    condition     = can(regex("^ami-[0-9a-f]{8,17}$", var.ami_id))
    error_message = "ami_id is the ID of an image, pinned: write ami-0123456789abcdef0, not a name or an alias."
  }
}

variable "replace" {
  type        = map(number)
  description = "Hosts to replace, by name (keydb-0-2), each with a number that is higher than the last time. A change of ami_id, instance types or key pair changes no host by itself: it holds for hosts that are made or replaced."
  default     = {}
}

variable "replaceable" {
  type        = set(string)
  description = "Hosts that may be ended; all others are protected against it. To replace a host: apply with its name here, then with a higher number in replace."
  default     = []
}

variable "protect" {
  type        = bool
  description = "Whether AWS refuses to delete hosts, load balancers, and buckets and zones that hold something. Before terraform destroy: apply with false."
  default     = true
}

variable "access" {
  type        = object({ via = optional(string, "session-manager"), user = optional(string, "admin"), key_name = optional(string), from = optional(set(string), []) })
  description = "How Ansible and people reach the hosts: via session-manager, with no port open; or ssh, with key_name, from security groups (sg-…) or private ranges."
  default     = {}

  validation {
    condition     = contains(["session-manager", "ssh"], var.access.via)
    error_message = "access.via is session-manager or ssh."
  }
  validation {
    condition     = var.access.via != "ssh" || (var.access.key_name != null && length(var.access.from) > 0)
    error_message = "access via ssh needs key_name, an EC2 key pair, and from: the security groups or private ranges that may connect."
  }
  validation {
    condition     = alltrue([for from in var.access.from : startswith(from, "sg-") || can(regex("^(10\\.|192\\.168\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|100\\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\\.)[0-9.]+/([89]|[12][0-9]|3[0-2])$", from))])
    error_message = "access.from takes security groups (sg-…) and private ranges such as 10.20.0.0/16; nobody reaches these hosts from public addresses."
  }
}

variable "zone" {
  type        = object({ name = string, id = optional(string) })
  description = "Private zone of the names, such as { name = \"cache.internal\" }; with id where it is there already. The plan's targets are named in it."
}

variable "names" {
  type        = map(object({ shard = string, to = string, port = optional(number) }))
  description = "The names that applications use, one for each group that moves as one: the plan's shard, and where it leads to: source, proxy or target. Changing to flips it, in either direction."
  default     = {}
}

variable "names_via" {
  type        = string
  description = "dns: names are records of the zone. nlb: names are those of an internal network load balancer."
  default     = "dns"
}

variable "client_security_group_ids" {
  type        = set(string)
  description = "Security groups of the applications: they may reach the proxies, and KeyDB after the move."

  validation {
    condition     = length(var.client_security_group_ids) > 0 && alltrue([for id in var.client_security_group_ids : can(regex("^sg-[0-9a-f]+$", id))])
    error_message = "client_security_group_ids names the security groups of the applications: write [\"sg-0123456789abcdef0\"]."
  }
}

variable "sources" {
  type = map(object({
    instance_id          = optional(string)
    replication_group_id = optional(string)
    version              = optional(string)
    memory_bytes         = optional(number)
    ranges               = optional(set(string))
  }))
  description = "What is known of the old Redis of each shard: instance_id of its EC2 host or replication_group_id of ElastiCache, to look it up by; version (7.0) and memory_bytes (its maxmemory) where you know better; ranges of addresses in which it is, where the plan names it by DNS or Sentinel and it is outside the VPC, such as behind a peering (default: all ranges of the VPC). With a plan that has cluster, the one key is cluster: memory_bytes is that of each master there."
  default     = {}

  validation {
    condition     = alltrue(flatten([for source in values(var.sources) : [for range in coalesce(source.ranges, []) : can(regex("^(10\\.|192\\.168\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|100\\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\\.)[0-9.]+/([89]|[12][0-9]|3[0-2])$", range))]]))
    error_message = "sources.ranges takes private ranges of addresses: write [\"10.1.0.0/16\"]."
  }
}

variable "cluster" {
  type = object({
    source              = optional(list(string), [])
    target              = optional(map(string), {})
    unaligned           = optional(bool, false)
    clients_reach_keydb = optional(bool, false)
  })
  description = "For a plan with cluster. source: the slots of each master of the Redis Cluster, such as [\"0-5460\", \"5461-10922,16383\", …], as redis-cli cluster nodes shows them. target: those of each master of the KeyDB cluster, by the name of its target: { keydb-0 = \"0-5460\", … }, and \"\" for a master without slots; empty where the plan's target is one KeyDB. Each target has keydb.nodes_per_target nodes, the first of which is the master at first. unaligned: whether masters of the target may share the slots of one of the source. clients_reach_keydb: opens the nodes to the applications, when they leave the proxies."
  default     = {}

  validation {
    condition     = alltrue([for slots in concat(var.cluster.source, [for slots in values(var.cluster.target) : slots if slots != ""]) : can(regex("^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$", slots))])
    error_message = "Slots are ranges joined by commas, such as 0-5460 or 0-99,200: copy them from redis-cli cluster nodes."
  }
}

variable "source_client_security_group_ids" {
  type        = list(string)
  description = "Security groups whose members the old Redis lets in: proxies and monitoring become members. Where there is none, the old Redis's own rules must let them in: output source_access says which."
  default     = []

  validation {
    condition     = alltrue([for id in var.source_client_security_group_ids : can(regex("^sg-[0-9a-f]+$", id))]) && length(var.source_client_security_group_ids) <= 4
    error_message = "source_client_security_group_ids are IDs of security groups, at most 4: write [\"sg-0123456789abcdef0\"]."
  }
}

variable "source_secrets" {
  type        = map(string)
  description = "ARNs of the secrets or parameters with the old Redis's passwords: source-proxy for the proxies, source-exporter for the exporter; by name. None where it asks for none."
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.source_secrets) : contains(["source-proxy", "source-exporter"], name)])
    error_message = "source_secrets takes source-proxy and source-exporter."
  }
  validation {
    condition     = alltrue([for arn in values(var.source_secrets) : can(regex("^arn:[^:]+:(secretsmanager|ssm):[^:]+:[0-9]{12}:", arn))])
    error_message = "source_secrets takes whole ARNs: write arn:aws:secretsmanager:eu-central-1:123456789012:secret:name-AbCdEf."
  }
}

variable "source_secret_kms_key_arns" {
  type        = list(string)
  description = "KMS keys of source_secrets, where they are not AWS's own."
  default     = []
}

variable "keydb" {
  type = object({
    instance_type     = optional(string, "r7i.large")
    nodes_per_target  = optional(number, 2)
    maxmemory_percent = optional(number, 60)
    spread            = optional(bool, true)
    data              = optional(object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) }), { gib = 64 })
  })
  description = "KeyDB's nodes."
  default     = {}
}

variable "shadow_proxy" {
  type        = object({ per_shard = optional(number), instance_type = optional(string, "c7i.large"), data = optional(object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) }), { gib = 16 }) })
  description = "The proxies: one thread serves a shard, so a fast core counts, not many. per_shard: 2 in two zones, one of which serves, or 1; by default 2 with names_via = nlb. With dns it is 1: names have both addresses with 2, and clients must then try the second where the first refuses."
  default     = {}

  validation {
    condition     = contains([1, 2], coalesce(var.shadow_proxy.per_shard, 1))
    error_message = "shadow_proxy.per_shard is 1, or 2: a proxy and its standby."
  }
}

variable "monitoring" {
  type = object({
    instance_type = optional(string, "t3.medium")
    data          = optional(object({ gib = number, iops = optional(number, 3000), throughput = optional(number, 125) }), { gib = 64 })
    emails        = optional(set(string), [])
    alerts_to     = optional(map(object({ to = string, ports = set(number) })), {})
  })
  description = "The monitoring host, and the receivers of alarms. alerts_to: where else it sends alerts, by a name of your own: a mail server, a webhook in your network, an Alertmanager of yours. HTTP and HTTPS to internet are open anyway."
  default     = {}

  validation {
    condition     = alltrue([for path in values(var.monitoring.alerts_to) : can(regex("^(sg|pl)-[0-9a-f]+$", path.to)) || can(cidrhost(path.to, 0))])
    error_message = "monitoring.alerts_to leads to a range of addresses, a security group (sg-…) or a prefix list (pl-…): write { mail = { to = \"10.0.5.25/32\", ports = [587] } }."
  }
  validation {
    condition     = alltrue([for path in values(var.monitoring.alerts_to) : length(path.ports) > 0])
    error_message = "Each of monitoring.alerts_to needs a port at least, such as ports = [9093]."
  }
}

variable "loadgen" {
  type        = object({ hosts = optional(number, 0), instance_type = optional(string, "c7i.xlarge") })
  description = "Load-test hosts; hosts = 0 switches them off."
  default     = {}
}

variable "passwords" {
  type = object({
    store    = optional(string, "secretsmanager")
    generate = optional(bool, true)
    in_state = optional(set(string), [])
    rotation = optional(map(object({ use = string, accept = set(string) })), {})
  })
  description = "Where passwords are kept (secretsmanager or ssm); whether Terraform draws them; which of those, such as keydb-app/1, it keeps in its state, or all (for an environment that was made so; else none); and the generations of those that are not at generation 1."
  default     = {}

  validation {
    condition     = var.passwords.store != "ssm" || var.passwords.generate
    error_message = "Parameter Store takes no parameter without a value: set generate = true, or keep passwords in secretsmanager."
  }
  validation {
    condition     = alltrue([for name in keys(var.passwords.rotation) : contains(["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel", "keydb-app", "proxy-admin-token", "grafana-admin"], name)])
    error_message = "passwords.rotation takes keydb-admin, keydb-replication, keydb-proxy, keydb-exporter, keydb-haproxy, keydb-sentinel, keydb-app, proxy-admin-token and grafana-admin."
  }
}

variable "bucket_name" {
  type        = string
  description = "Name of the bucket of reports and backups; it must be nobody else's in all of AWS."
}

variable "transfer_bucket_name" {
  type        = string
  description = "Name of the bucket through which Ansible sends files to hosts by Session Manager, secrets among them: without versions, emptied after a day. Default: bucket_name with -transfer."
  default     = null
}

variable "keep_backups_days" {
  type        = number
  description = "Days for which backups are kept."
  default     = 35
}

variable "ports" {
  type = object({
    keydb          = optional(number, 6390)
    any            = optional(number, 6380)
    haproxy        = optional(number, 8404)
    node_exporter  = optional(number, 9100)
    redis_exporter = optional(number, 9121)
    prometheus     = optional(number, 9090)
    grafana        = optional(number, 3000)
    alertmanager   = optional(number, 9093)
    sentinel       = optional(number, 26379)
  })
  description = "Ports: of KeyDB itself (keydb), of HAProxy for any node (any) and its metrics (haproxy), of exporters and dashboards, of the Sentinels. For the writer, HAProxy has the port of the plan's target."
  default     = {}

  validation {
    condition     = alltrue([for port in values(var.ports) : port >= 1 && port <= 65535]) && length(distinct(values(var.ports))) == length(values(var.ports))
    error_message = "ports are numbers from 1 to 65535, and no two are the same."
  }
}

variable "internet" {
  type        = string
  description = "What hosts may reach over HTTP and HTTPS, for packages and for AWS's endpoints: a range or a prefix list (pl-…), such as that of your mirror. The subnets' routes must lead there."
  default     = "0.0.0.0/0"

  validation {
    condition     = can(cidrhost(var.internet, 0)) || can(regex("^pl-[0-9a-f]+$", var.internet))
    error_message = "internet is a range such as 0.0.0.0/0 or 10.0.0.0/8, or a prefix list (pl-…)."
  }
}

variable "allow_single_zone" {
  type        = bool
  description = "Whether all KeyDB nodes, or both proxies of a shard, may be in one availability zone. For rehearsals."
  default     = false
}

variable "prices" {
  type = object({
    currency       = optional(string, "USD")
    instance_hour  = optional(map(number), {})
    gib_month      = optional(number)
    iops_month     = optional(number)
    mibs_month     = optional(number)
    load_balancer  = optional(number)
    zone_month     = optional(number)
    secret_month   = optional(number)
    alarm_month    = optional(number)
    kms_key_month  = optional(number)
    hours_in_month = optional(number, 730)
  })
  description = "Prices of your region and contract, for the cost summary: an hour of each instance type; a month of a GiB, a provisioned IOPS and a MiB/s of gp3, of a zone, a secret, an alarm and a KMS key; an hour of a load balancer."
  default     = {}

  validation {
    condition     = alltrue([for price in concat(values(var.prices.instance_hour), [for price in [var.prices.gib_month, var.prices.iops_month, var.prices.mibs_month, var.prices.load_balancer, var.prices.zone_month, var.prices.secret_month, var.prices.alarm_month, var.prices.kms_key_month] : price if price != null]) : price >= 0])
    error_message = "A price is a number from 0."
  }
}

variable "tags" {
  type        = map(string)
  description = "Tags of all that is made."
  default     = {}
}
