# Plans only: nothing is started here. What apply and destroy do is tested by ../../test/local.long.test.ts.
run "refuses_no_folder" {
  command = plan

  variables {
    directory = " "
  }
  expect_failures = [var.directory]
}

run "refuses_a_redis_port_that_is_none" {
  command = plan

  variables {
    redis_port = 65536
  }
  expect_failures = [var.redis_port]
}

run "refuses_a_keydb_port_that_is_none" {
  command = plan

  variables {
    keydb_port = 65536
  }
  expect_failures = [var.keydb_port]
}

run "refuses_a_proxy_port_that_is_none" {
  command = plan

  variables {
    proxy_port = 65536
  }
  expect_failures = [var.proxy_port]
}

run "refuses_a_admin_port_that_is_none" {
  command = plan

  variables {
    admin_port = 65536
  }
  expect_failures = [var.admin_port]
}
