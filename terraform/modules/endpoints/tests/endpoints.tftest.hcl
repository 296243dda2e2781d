mock_provider "aws" {
  mock_resource "aws_route53_zone" {
    defaults = { zone_id = "Z0123" }
  }
}

variables {
  name      = "checkout"
  vpc_id    = "vpc-0a"
  zone      = { name = "cache.internal" }
  addresses = { keydb-0 = ["10.0.1.21", "10.0.2.21"], proxy-cache-0 = ["10.0.1.31"] }
  destinations = {
    cache-0 = {
      source = { host = "10.0.0.11", port = 6379, kind = "redis" }
      proxy  = { addresses = ["10.0.1.31"], port = 6379, admin_port = 9400 }
      target = { addresses = ["10.0.1.21", "10.0.2.21"], port = 6379 }
    }
    cache-1 = {
      source = { host = "redis.internal", port = 6379, kind = "redis" }
      proxy  = { addresses = ["10.0.1.32"], port = 6379, admin_port = 9400 }
      target = { addresses = ["10.0.1.22"], port = 6379 }
    }
    guarded = {
      source = { host = "10.0.0.13", port = 26379, kind = "sentinel" }
      proxy  = { addresses = ["10.0.1.33"], port = 6379, admin_port = 9400 }
      target = { addresses = ["10.0.1.22"], port = 6379 }
    }
    slots-0 = {
      source = { host = "10.0.0.15", port = 6379, kind = "cluster" }
      proxy  = { addresses = ["10.0.1.35", "10.0.2.35"], port = 7000, admin_port = 9400 }
      target = { addresses = [], port = 6390 }
    }
    translated = {
      source = { host = "10.0.0.14", port = 6379, kind = "redis" }
      proxy  = { addresses = ["10.0.1.34"], port = 6400, admin_port = 9400 }
      target = { addresses = ["10.0.1.22"], port = 6379 }
    }
  }
  names = { checkout = { shard = "cache-0", to = "proxy" } }
}

run "to_the_source" {
  variables {
    names = { checkout = { shard = "cache-0", to = "source" }, search = { shard = "cache-1", to = "source" } }
  }

  assert {
    condition     = aws_route53_record.names["checkout"].records == toset(["10.0.0.11"]) && aws_route53_record.names["checkout"].type == "A"
    error_message = "the old Redis by its address"
  }
  assert {
    condition     = aws_route53_record.names["search"].records == toset(["redis.internal"]) && aws_route53_record.names["search"].type == "CNAME"
    error_message = "or by its name"
  }
  assert {
    condition     = aws_route53_record.hosts["keydb-0"].records == toset(["10.0.1.21", "10.0.2.21"]) && aws_route53_record.hosts["keydb-0"].name == "keydb-0.cache.internal" && length(aws_route53_zone.this) == 1
    error_message = "hosts and targets have names, too"
  }
}

run "on_to_the_proxy" {
  assert {
    condition     = aws_route53_record.names["checkout"].records == toset(["10.0.1.31"]) && output.names.checkout == { name = "checkout.cache.internal", port = 6379, to = "proxy", shard = "cache-0" }
    error_message = "flipped by one variable"
  }
}

run "and_back_to_the_source" {
  variables {
    names = { checkout = { shard = "cache-0", to = "source" } }
  }

  assert {
    condition     = aws_route53_record.names["checkout"].records == toset(["10.0.0.11"])
    error_message = "and back"
  }
}

run "to_the_target_in_a_zone_that_is_there" {
  variables {
    zone  = { name = "cache.internal", id = "Z0999" }
    names = { checkout = { shard = "cache-0", to = "target" } }
  }

  assert {
    condition     = aws_route53_record.names["checkout"].records == toset(["10.0.1.21", "10.0.2.21"]) && length(aws_route53_zone.this) == 0 && aws_route53_record.names["checkout"].zone_id == "Z0999"
    error_message = "every node, for each finds the writer"
  }
}

run "nothing_is_protected_before_destroy" {
  variables {
    via        = "nlb"
    protect    = false
    subnet_ids = ["subnet-0a", "subnet-0b"]
  }

  assert {
    condition     = !aws_lb.this[0].enable_deletion_protection && aws_route53_zone.this[0].force_destroy
    error_message = "terraform destroy removes the load balancer, and the zone with all its records"
  }
}

run "by_load_balancer" {
  variables {
    via        = "nlb"
    subnet_ids = ["subnet-0a", "subnet-0b"]
    names      = { checkout = { shard = "cache-0", to = "target" }, search = { shard = "translated", to = "source", port = 6380 } }
  }

  assert {
    condition     = aws_lb.this[0].internal && aws_lb.this[0].enable_deletion_protection && length(aws_route53_record.names) == 0
    error_message = "internal, and protected"
  }
  assert {
    condition     = aws_lb_listener.this["checkout"].default_action[0].target_group_arn == aws_lb_target_group.this["checkout/target"].arn && aws_lb_listener.this["search"].default_action[0].target_group_arn == aws_lb_target_group.this["search/source"].arn
    error_message = "each listener forwards to what its name leads to"
  }
  assert {
    condition     = aws_lb_target_group_attachment.this["checkout/target/1"].target_id == "10.0.2.21" && aws_lb_target_group_attachment.this["search/proxy/0"].port == 6400 && output.ports == { checkout = 6379, search = 6380 }
    error_message = "ports are translated"
  }
}

run "two_proxies_by_record" {
  variables {
    destinations = {
      cache-0 = {
        source = { host = "10.0.0.11", port = 6379, kind = "redis" }
        proxy  = { addresses = ["10.0.1.31", "10.0.2.31"], port = 6379, admin_port = 9400 }
        target = { addresses = ["10.0.1.21"], port = 6379 }
      }
    }
  }

  assert {
    condition     = aws_route53_record.names["checkout"].records == toset(["10.0.1.31", "10.0.2.31"])
    error_message = "both addresses"
  }
}

run "two_proxies_by_load_balancer" {
  variables {
    via        = "nlb"
    subnet_ids = ["subnet-0a", "subnet-0b"]
    destinations = {
      cache-0 = {
        source = { host = "10.0.0.11", port = 6379, kind = "redis" }
        proxy  = { addresses = ["10.0.1.31", "10.0.2.31"], port = 6379, admin_port = 9401 }
        target = { addresses = ["10.0.1.21"], port = 6379 }
      }
    }
  }

  assert {
    condition     = aws_lb_target_group_attachment.this["checkout/proxy/0"].target_id == "10.0.1.31" && aws_lb_target_group_attachment.this["checkout/proxy/1"].target_id == "10.0.2.31"
    error_message = "both are members"
  }
  assert {
    condition     = [for check in aws_lb_target_group.this["checkout/proxy"].health_check : [check.protocol, check.port, check.path, check.matcher, check.interval, check.unhealthy_threshold]] == [["HTTP", "9401", "/readyz", "200", 5, 2]]
    error_message = "the one that is ready is the one that serves: ${jsonencode(aws_lb_target_group.this["checkout/proxy"].health_check)}"
  }
  assert {
    condition     = aws_lb_target_group.this["checkout/target"].health_check[0].protocol == "TCP" && aws_lb_target_group.this["checkout/target"].health_check[0].port == "traffic-port"
    error_message = "KeyDB is asked at its port"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.unhealthy["checkout"].metric_name == "HealthyHostCount" && aws_cloudwatch_metric_alarm.unhealthy["checkout"].threshold == 1
    error_message = "a standby raises no alarm"
  }
}

run "tells_of_two_ways_to_the_source" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-0", to = "proxy" }, search = { shard = "cache-0", to = "source" } }
  }
  expect_failures = [check.one_way_to_the_source]
}

run "refuses_ports_that_differ" {
  command = plan

  variables {
    names = { checkout = { shard = "translated", to = "proxy" } }
  }
  expect_failures = [aws_route53_record.names["checkout"]]
}

run "refuses_two_names_of_one_port" {
  command = plan

  variables {
    via   = "nlb"
    names = { checkout = { shard = "cache-0", to = "proxy" }, search = { shard = "cache-0", to = "proxy" } }
  }
  expect_failures = [aws_lb_listener.this["checkout"], aws_lb_listener.this["search"]]
}

run "refuses_the_name_of_a_target" {
  command = plan

  variables {
    names = { keydb-0 = { shard = "cache-0", to = "proxy" } }
  }
  expect_failures = [output.names]
}

run "refuses_an_unknown_shard" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-9", to = "proxy" } }
  }
  expect_failures = [output.names]
}

run "refuses_a_shard_that_is_split" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-0", to = "proxy" }, search = { shard = "cache-0", to = "target" } }
  }
  expect_failures = [output.names]
}

run "refuses_a_name_for_sentinel" {
  command = plan

  variables {
    via   = "nlb"
    names = { checkout = { shard = "guarded", to = "source" } }
  }
  expect_failures = [output.names]
}

run "refuses_a_load_balancer_for_a_name" {
  command = plan

  variables {
    via   = "nlb"
    names = { checkout = { shard = "cache-1", to = "source" } }
  }
  expect_failures = [output.names]
}

run "refuses_a_destination_that_is_none" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-0", to = "keydb" } }
  }
  expect_failures = [var.names]
}

run "refuses_a_name_that_is_no_label" {
  command = plan

  variables {
    names = { "check.out" = { shard = "cache-0", to = "proxy" } }
  }
  expect_failures = [var.names]
}

run "refuses_a_port_that_is_none" {
  command = plan

  variables {
    names = { checkout = { shard = "cache-0", to = "proxy", port = 0 } }
  }
  expect_failures = [var.names]
}

run "refuses_a_zone_with_a_dot_at_the_end" {
  command = plan

  variables {
    zone = { name = "cache.internal." }
  }
  expect_failures = [var.zone]
}

run "refuses_a_zone_by_name" {
  command = plan

  variables {
    zone = { name = "cache.internal", id = "internal" }
  }
  expect_failures = [var.zone]
}

run "refuses_an_unknown_way" {
  command = plan

  variables {
    via = "alb"
  }
  expect_failures = [var.via]
}

run "refuses_a_long_memory" {
  command = plan

  variables {
    ttl = 86400
  }
  expect_failures = [var.ttl]
}

run "of_a_cluster_the_proxies_alone" {
  variables {
    via        = "nlb"
    subnet_ids = ["subnet-0a", "subnet-0b"]
    names      = { cache = { shard = "slots-0", to = "proxy" } }
  }

  assert {
    condition     = keys(aws_lb_target_group.this) == ["cache/proxy"] && aws_lb_listener.this["cache"].port == 7000
    error_message = "no target group of Redis or KeyDB, which clients of a cluster find by themselves"
  }
}

run "refuses_a_name_for_nodes_of_a_cluster" {
  command = plan

  variables {
    via        = "nlb"
    subnet_ids = ["subnet-0a", "subnet-0b"]
    names      = { cache = { shard = "slots-0", to = "target" } }
  }
  expect_failures = [output.names]
}
