mock_provider "aws" {
  mock_data "aws_secretsmanager_random_password" {
    defaults = { random_password = "drawn" }
  }
}

variables {
  prefix      = "checkout"
  passwords   = { keydb-app = { use = "1", accept = ["1"] } }
  kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/k"
}

run "first_generation" {
  assert {
    condition     = output.passwords["keydb-app"] == { use = "checkout/keydb-app/1", accept = ["checkout/keydb-app/1"] }
    error_message = "one generation, in use"
  }
  assert {
    condition     = aws_secretsmanager_secret.this["keydb-app/1"].kms_key_id == var.kms_key_arn && aws_secretsmanager_secret_version.this["keydb-app/1"].secret_string_wo_version == 1
    error_message = "drawn, and under the given key"
  }
  assert {
    condition     = aws_secretsmanager_secret_version.this["keydb-app/1"].secret_string == null && length(data.aws_secretsmanager_random_password.this) == 0
    error_message = "the value is write-only"
  }
}

run "a_new_one_is_accepted_first" {
  variables {
    passwords = { keydb-app = { use = "1", accept = ["1", "2"] } }
  }

  assert {
    condition     = output.passwords["keydb-app"] == { use = "checkout/keydb-app/1", accept = ["checkout/keydb-app/1", "checkout/keydb-app/2"] }
    error_message = "both are accepted, the old one is in use"
  }
}

run "then_used_and_the_old_one_dropped" {
  variables {
    passwords = { keydb-app = { use = "2", accept = ["2"] } }
  }

  assert {
    condition     = output.passwords["keydb-app"].use == "checkout/keydb-app/2" && length(aws_secretsmanager_secret.this) == 1
    error_message = "the old one is gone"
  }
}

run "in_parameter_store" {
  variables {
    store = "ssm"
  }

  assert {
    condition     = aws_ssm_parameter.this["keydb-app/1"].type == "SecureString" && output.passwords["keydb-app"].use == "/checkout/keydb-app/1" && length(aws_secretsmanager_secret.this) == 0
    error_message = "encrypted, in Parameter Store alone"
  }
}

run "kept_in_the_state" {
  variables {
    in_state = ["all"]
  }

  assert {
    condition     = nonsensitive(aws_secretsmanager_secret_version.this["keydb-app/1"].secret_string) == "drawn" && aws_secretsmanager_secret_version.this["keydb-app/1"].secret_string_wo_version == null
    error_message = "drawn by AWS"
  }
}

run "refuses_an_unknown_generation_in_the_state" {
  command = plan

  variables {
    in_state = ["keydb-app/2"]
  }
  expect_failures = [output.passwords]
}

run "made_empty" {
  variables {
    generate = false
  }

  assert {
    condition     = length(aws_secretsmanager_secret.this) == 1 && length(aws_secretsmanager_secret_version.this) == 0
    error_message = "made empty"
  }
}

run "refuses_a_password_that_is_not_accepted" {
  command = plan

  variables {
    passwords = { keydb-app = { use = "2", accept = ["1"] } }
  }
  expect_failures = [var.passwords]
}

run "refuses_three_generations" {
  command = plan

  variables {
    passwords = { keydb-app = { use = "1", accept = ["1", "2", "3"] } }
  }
  expect_failures = [var.passwords]
}

run "refuses_a_name_with_a_slash" {
  command = plan

  variables {
    passwords = { "keydb/app" = { use = "1", accept = ["1"] } }
  }
  expect_failures = [var.passwords]
}

run "refuses_an_unknown_store" {
  command = plan

  variables {
    store = "vault"
  }
  expect_failures = [var.store]
}

run "refuses_an_empty_prefix" {
  command = plan

  variables {
    prefix = ""
  }
  expect_failures = [var.prefix]
}

run "refuses_a_short_recovery" {
  command = plan

  variables {
    recovery_days = 3
  }
  expect_failures = [var.recovery_days]
}
