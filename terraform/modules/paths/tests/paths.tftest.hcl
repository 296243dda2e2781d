mock_provider "aws" {}

variables {
  groups = { proxy = "sg-0a", keydb = "sg-0b" }
  paths  = { "proxies feed KeyDB" = { from = "proxy", to = "keydb", ports = [6379, 6380] } }
}

run "opens_both_ends" {
  variables {
    paths = {
      "proxies feed KeyDB" = { from = "proxy", to = "keydb", ports = [6379, 6380] }
      "clients"            = { from = "sg-0c", to = "proxy", ports = [6379] }
      "to the source"      = { from = "proxy", to = "10.0.0.11/32", ports = [6379] }
      "to AWS"             = { from = "proxy", to = "pl-0a", ports = [443] }
    }
  }

  assert {
    condition     = sort(keys(aws_vpc_security_group_ingress_rule.this)) == tolist(["proxy → keydb:6379", "proxy → keydb:6380", "sg-0c → proxy:6379"])
    error_message = "ingress of what ends at a group of ours"
  }
  assert {
    condition     = sort(keys(aws_vpc_security_group_egress_rule.this)) == tolist(["proxy → 10.0.0.11/32:6379", "proxy → keydb:6379", "proxy → keydb:6380", "proxy → pl-0a:443"])
    error_message = "egress of what begins at a group of ours"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.this["proxy → keydb:6379"].referenced_security_group_id == "sg-0a" && aws_vpc_security_group_ingress_rule.this["sg-0c → proxy:6379"].referenced_security_group_id == "sg-0c"
    error_message = "by security group, not by address"
  }
  assert {
    condition     = aws_vpc_security_group_egress_rule.this["proxy → 10.0.0.11/32:6379"].cidr_ipv4 == "10.0.0.11/32" && aws_vpc_security_group_egress_rule.this["proxy → pl-0a:443"].prefix_list_id == "pl-0a"
    error_message = "to ranges and prefix lists"
  }
  assert {
    condition     = alltrue([for rule in concat(values(aws_vpc_security_group_ingress_rule.this), values(aws_vpc_security_group_egress_rule.this)) : rule.from_port == rule.to_port && rule.ip_protocol == "tcp" && rule.description != ""])
    error_message = "single ports, with a name"
  }
}

run "two_paths_are_one_rule" {
  command = plan

  variables {
    paths = {
      "orders: proxies to the source" = { from = "proxy", to = "10.0.0.0/16", ports = [6379] }
      "carts: proxies to the source"  = { from = "proxy", to = "10.0.0.0/16", ports = [6379, 6380] }
    }
  }
  assert {
    condition     = length(aws_vpc_security_group_egress_rule.this) == 2 && aws_vpc_security_group_egress_rule.this["proxy → 10.0.0.0/16:6379"].description == "carts: proxies to the source, orders: proxies to the source"
    error_message = "AWS refuses a rule that is there already"
  }
}

run "refuses_an_unknown_beginning" {
  command = plan

  variables {
    paths = { typo = { from = "prxy", to = "keydb", ports = [6379] } }
  }
  expect_failures = [aws_vpc_security_group_ingress_rule.this["prxy → keydb:6379"]]
}

run "refuses_an_unknown_end" {
  command = plan

  variables {
    paths = { typo = { from = "proxy", to = "kdb", ports = [6379] } }
  }
  expect_failures = [aws_vpc_security_group_egress_rule.this["proxy → kdb:6379"]]
}

run "refuses_a_path_that_opens_nothing" {
  command = plan

  variables {
    paths = { nowhere = { from = "sg-0c", to = "sg-0d", ports = [6379] } }
  }
  expect_failures = [output.open]
}

run "refuses_the_whole_world" {
  command = plan

  variables {
    paths = { world = { from = "0.0.0.0/0", to = "keydb", ports = [6379] } }
  }
  expect_failures = [var.paths]
}

run "refuses_a_port_that_is_none" {
  command = plan

  variables {
    paths = { port = { from = "proxy", to = "keydb", ports = [70000] } }
  }
  expect_failures = [var.paths]
}

run "refuses_a_name_that_aws_does_not_take" {
  command = plan

  variables {
    paths = { "a → b" = { from = "proxy", to = "keydb", ports = [6379] } }
  }
  expect_failures = [var.paths]
}
