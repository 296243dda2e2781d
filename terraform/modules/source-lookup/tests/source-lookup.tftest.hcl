mock_provider "aws" {
  mock_data "aws_instance" {
    defaults = { instance_type = "r6g.large", private_ip = "10.0.0.11", secondary_private_ips = [] }
  }
  mock_data "aws_ec2_instance_type" {
    defaults = { memory_size = 16384 }
  }
  mock_data "aws_elasticache_replication_group" {
    defaults = { cluster_mode = "disabled", node_type = "cache.r6g.large", primary_endpoint_address = "master.cache.euc1.cache.amazonaws.com", port = 6379, auth_token_enabled = true, member_clusters = ["cache-002", "cache-001"] }
  }
  mock_data "aws_elasticache_cluster" {
    defaults = { engine = "redis", engine_version = "7.1.0" }
  }
}

variables {
  sources = { cache-0 = { url = "redis://proxy:$${REDIS_PASSWORD}@10.0.0.11" } }
}

run "what_the_plan_says" {
  command = plan

  variables {
    sources = {
      plain    = { url = "redis://proxy:p@ss@10.0.0.11", version = "6.2.14", memory_bytes = 1000 }
      tls      = { url = "rediss://redis.internal:6380/0", version = "7.4" }
      v6       = { url = "redis://[fd00::1]:6381" }
      sentinel = { url = "redis+sentinel://proxy:x@10.0.0.1:26379,10.0.0.2:26379/cache" }
      old      = { url = "redis://10.0.0.13:6379", version = "2.8" }
    }
  }
  assert {
    condition     = output.sources.plain == { host = "10.0.0.11", port = 6379, tls = false, kind = "redis", version = "6.2.14", rdb_version = 9, memory_bytes = 1000 }
    error_message = "what was said, without the password"
  }
  assert {
    condition     = output.sources.tls.tls && output.sources.tls.port == 6380 && output.sources.tls.rdb_version == 12 && output.sources.tls.memory_bytes == null
    error_message = "TLS"
  }
  assert {
    condition     = output.sources.v6.host == "fd00::1" && output.sources.v6.port == 6381 && output.sources.v6.rdb_version == null
    error_message = "IPv6"
  }
  assert {
    condition     = output.sources.sentinel.kind == "sentinel" && output.sources.sentinel.host == "10.0.0.1" && output.sources.sentinel.port == 26379 && output.sources.old.rdb_version == 6
    error_message = "Sentinel, and an old one"
  }
}

run "an_ec2_host" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.11:6379", instance_id = "i-0a", version = "7.0" } }
  }
  assert {
    condition     = output.sources.cache-0.memory_bytes == 16384 * 1024 * 1024 && output.sources.cache-0.rdb_version == 10
    error_message = "memory of its instance type"
  }
}

run "elasticache" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://master.cache.euc1.cache.amazonaws.com:6379", replication_group_id = "cache" } }
  }
  assert {
    condition     = output.sources.cache-0.kind == "elasticache" && output.sources.cache-0.version == "7.1.0" && output.sources.cache-0.rdb_version == 10 && output.sources.cache-0.memory_bytes == 16384 * 1024 * 1024
    error_message = "version and memory of its nodes"
  }
}

run "refuses_another_primary_than_the_plan_has" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://master.other.euc1.cache.amazonaws.com:6379", replication_group_id = "cache" } }
  }
  expect_failures = [data.aws_elasticache_replication_group.this["cache-0"]]
}

run "refuses_serverless" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://cache-a-abc123.serverless.euc1.cache.amazonaws.com:6379" } }
  }
  expect_failures = [var.sources]
}

run "refuses_the_configuration_endpoint_of_a_cluster" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://u:p@clustercfg.cache-a.abc123.euc1.cache.amazonaws.com:6379" } }
  }
  expect_failures = [var.sources]
}

run "refuses_a_reader_endpoint_with_tls" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://u:p@replica.cache-a.abc123.euc1.cache.amazonaws.com:6379" } }
  }
  expect_failures = [var.sources]
}

run "refuses_a_reader_endpoint_in_the_clear" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://cache-a-ro.abc123.ng.0001.euc1.cache.amazonaws.com:6379" } }
  }
  expect_failures = [var.sources]
}

run "refuses_cluster_mode" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://master.cache.euc1.cache.amazonaws.com:6379", replication_group_id = "cache" } }
  }
  override_data {
    target = data.aws_elasticache_replication_group.this
    values = { cluster_mode = "enabled", node_type = "cache.r6g.large", primary_endpoint_address = "", port = 6379, auth_token_enabled = true, member_clusters = ["cache-001"] }
  }
  expect_failures = [data.aws_elasticache_replication_group.this["cache-0"]]
}

run "refuses_memcached" {
  command = plan

  variables {
    sources = { cache-0 = { url = "rediss://master.cache.euc1.cache.amazonaws.com:6379", replication_group_id = "cache" } }
  }
  override_data {
    target = data.aws_elasticache_cluster.this
    values = { engine = "memcached", engine_version = "1.6.22" }
  }
  expect_failures = [data.aws_elasticache_cluster.this["cache-0"]]
}

run "refuses_another_host_than_the_plan_has" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.12:6379", instance_id = "i-0a" } }
  }
  expect_failures = [data.aws_instance.this["cache-0"]]
}

run "refuses_a_host_from_the_environment" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://$${REDIS_HOST}:6379" } }
  }
  expect_failures = [var.sources]
}

run "refuses_both_lookups" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.11", instance_id = "i-0a", replication_group_id = "cache" } }
  }
  expect_failures = [var.sources]
}

run "refuses_an_instance_by_name" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.11", instance_id = "redis-0" } }
  }
  expect_failures = [var.sources]
}

run "refuses_a_version_without_its_minor" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.11", version = "7" } }
  }
  expect_failures = [var.sources]
}

run "refuses_no_memory" {
  command = plan

  variables {
    sources = { cache-0 = { url = "redis://10.0.0.11", memory_bytes = 0 } }
  }
  expect_failures = [var.sources]
}
