# What it costs a month, reckoned from prices that are passed in. Traffic, snapshots and requests are not in it.

locals {
  billed = [for billed in [module.keydb.billed, module.shadow_proxy.billed, module.observability.billed, module.loadgen.billed] : billed if billed != null]
  alarms = module.shadow_proxy.alarms + module.observability.alarms + module.endpoints.billed.alarms

  # Each part: how many, and the price of one a month.
  parts = merge(
    {
      for type in distinct(flatten([for billed in local.billed : keys(billed.instances)])) : "instances ${type}" => {
        count = sum([for billed in local.billed : lookup(billed.instances, type, 0)])
        price = try(var.prices.instance_hour[type] * var.prices.hours_in_month, null)
      }
    },
    {
      "volumes, GiB"   = { count = sum(local.billed[*].gib), price = var.prices.gib_month }
      "volumes, IOPS"  = { count = sum(local.billed[*].iops), price = var.prices.iops_month }
      "volumes, MiB/s" = { count = sum(local.billed[*].throughput), price = var.prices.mibs_month }
      "load balancers" = { count = module.endpoints.billed.load_balancers, price = try(var.prices.load_balancer * var.prices.hours_in_month, null) }
      "zones"          = { count = module.endpoints.billed.zones, price = var.prices.zone_month }
      "secrets"        = { count = var.passwords.store == "ssm" ? 0 : length(flatten(values(module.secrets.passwords)[*].accept)), price = var.prices.secret_month }
      "alarms"         = { count = local.alarms, price = var.prices.alarm_month }
      "keys"           = { count = 1, price = var.prices.kms_key_month }
    },
  )
  needed        = { for part, of in local.parts : part => of if of.count > 0 }
  without_price = [for part, of in local.needed : part if of.price == null]

  cost = {
    currency      = var.prices.currency
    month         = length(local.without_price) > 0 ? null : floor(100 * sum([for of in values(local.needed) : of.count * of.price]) + 0.5) / 100
    parts         = { for part, of in local.needed : part => { count = of.count, month = of.price == null ? null : floor(100 * of.count * of.price + 0.5) / 100 } }
    without_price = local.without_price
  }
}
