# The module without an account: what AWS would answer is made up, and applying changes nothing anywhere.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { id = "us-east-1", name = "us-east-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { instance_types = ["m5.xlarge", "m5.xlarge"], locations = ["use1-az1", "use1-az4"] }
  }
  mock_data "aws_ec2_instance_type" {
    defaults = { supported_architectures = ["x86_64"], efa_maximum_interfaces = 0 }
  }
  mock_data "aws_ami_ids" {
    defaults = { ids = ["ami-1"] }
  }
  mock_data "aws_ami" {
    defaults = { architecture = "x86_64", creation_date = "2025-06-01T00:00:00.000Z", root_device_name = "/dev/sda1", block_device_mappings = [] }
  }
  mock_data "aws_vpc" {
    defaults = { id = "vpc-1" }
  }
  mock_data "aws_subnets" {
    defaults = { ids = ["subnet-1"] }
  }
  mock_data "aws_instances" {
    defaults = { ids = ["i-1", "i-2"] }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-1" }
  }
  mock_resource "aws_instance" {
    defaults = { private_ip = "10.0.0.7" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/functions" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-1:123456789012:log-group:functions" }
  }
  mock_resource "aws_s3_bucket" {
    defaults = { id = "checkpoints", bucket = "checkpoints", arn = "arn:aws:s3:::checkpoints" }
  }
}

variables {
  schema_version = 1
  fleet_name     = "mobilenet"
  plan_id        = "p-1"
  region         = "us-east-1"
  cost_usd_low   = 0.28
  cost_usd_high  = 0.33
  functions      = { memory_mb = 128, function_count = 29 }
  image_uri      = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training:v1"
  pools = {
    ps-m5-xlarge-use1-az1-on-demand = {
      role                   = "ps"
      instance_type          = "m5.xlarge"
      zone_id                = "use1-az1"
      market                 = "on-demand"
      node_count             = 2
      max_price_usd_per_hour = "0.192"
      efa_interfaces         = 0
    }
  }
}

run "functions_are_as_planned" {
  variables {
    environment = { DATASET = "cifar10" }
    tags        = { Team = "vision" }
  }

  assert {
    condition     = aws_lambda_function.this.memory_size == 128 && aws_lambda_function.this.reserved_concurrent_executions == 29
    error_message = "Memory and count must be the plan's."
  }
  assert {
    condition     = aws_lambda_function.this.timeout == 900 && aws_lambda_function.this.package_type == "Image"
    error_message = "An image may run as long as Lambda lets it."
  }
  assert {
    condition     = aws_lambda_function.this.vpc_config[0].subnet_ids == toset(["subnet-1"]) && aws_lambda_function.this.vpc_config[0].security_group_ids == toset(["sg-1"])
    error_message = "Functions must be where their parameter servers are, in the same group."
  }
  assert {
    condition = aws_lambda_function.this.environment[0].variables == tomap({
      DATASET                      = "cifar10"
      SPOTWRIGHT_FLEET             = "mobilenet"
      SPOTWRIGHT_PARAMETER_SERVERS = "10.0.0.7,10.0.0.7"
    })
    error_message = "Functions must find their parameter servers, and nothing of the plan's name may be there."
  }
  assert {
    condition     = aws_lambda_function.this.tags == tomap({ Fleet = "mobilenet", Plan = "p-1", Role = "worker", Team = "vision" })
    error_message = "Functions are the workers of their fleet and plan."
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.this.maximum_retry_attempts == 0 && aws_lambda_function_event_invoke_config.this.maximum_event_age_in_seconds == 60
    error_message = "Lambda must not try again by itself, nor later."
  }
  assert {
    condition     = keys(output.parameter_server_private_ips) == ["ps-m5-xlarge-use1-az1-on-demand/0", "ps-m5-xlarge-use1-az1-on-demand/1"]
    error_message = "The parameter servers must be rented."
  }
  assert {
    condition     = aws_cloudwatch_log_group.this.name == "/aws/lambda/${aws_lambda_function.this.function_name}" && aws_cloudwatch_log_group.this.retention_in_days == 14
    error_message = "Lambda writes to a log group of the function's name."
  }
}

run "roles_of_functions_are_apart_from_others_and_bounded_if_asked" {
  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
  }
  assert {
    condition     = [aws_iam_role.this.path, aws_iam_role.this.permissions_boundary] == ["/spotwright/", "arn:aws:iam::123456789012:policy/boundary"]
    error_message = "The functions' role has the path of a fleet's and the boundary."
  }
}

run "functions_may_log_and_join_the_network_and_nothing_else" {
  assert {
    condition = {
      for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Sid => [s.Effect, s.Resource[0]]
      } == {
      WriteLogs   = ["Allow", "arn:aws:logs:us-east-1:123456789012:log-group:functions:*"]
      JoinNetwork = ["Allow", "*"]
      NotFromCode = ["Deny", "*"]
    }
    error_message = "The functions' role has more or less than it needs."
  }
  assert {
    condition = [
      for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Condition.ArnEquals["lambda:SourceFunctionArn"] if s.Effect == "Deny"
    ] == ["arn:aws:lambda:us-east-1:123456789012:function:mobilenet"]
    error_message = "Code of the function must not touch the network's interfaces."
  }
  assert {
    condition = toset(flatten([
      for s in jsondecode(aws_iam_role_policy.this.policy).Statement : [for action in s.Action : split(":", action)[0]]
    ])) == toset(["ec2", "logs"])
    error_message = "Without a bucket the functions use logs and the network alone."
  }
}

run "a_checkpoint_bucket_is_shared_with_the_functions" {
  variables {
    create_checkpoint_bucket = true
  }
  assert {
    condition = [
      for s in jsondecode(aws_iam_role_policy.this.policy).Statement : s.Resource[0] if strcontains(s.Sid, "Checkpoints")
    ] == ["arn:aws:s3:::checkpoints", "arn:aws:s3:::checkpoints/*"]
    error_message = "Functions may use the fleet's own bucket."
  }
  assert {
    condition     = aws_lambda_function.this.environment[0].variables["SPOTWRIGHT_CHECKPOINT_BUCKET"] == "checkpoints"
    error_message = "Functions are told the bucket's name."
  }
}

run "parameter_servers_are_named_in_the_order_of_their_numbers" {
  variables {
    pools = {
      ps-m5-xlarge-use1-az1-spot = {
        role                   = "ps"
        instance_type          = "m5.xlarge"
        zone_id                = "use1-az1"
        market                 = "spot"
        node_count             = 11
        max_price_usd_per_hour = "0.192"
        efa_interfaces         = 0
      }
    }
    allow_spot_parameter_servers = true
    root_volume_gib              = 8
    ami_names                    = ["ours"]
  }
  override_resource {
    target = module.fleet.aws_instance.this["ps-m5-xlarge-use1-az1-spot/10"]
    values = { private_ip = "10.0.0.10" }
  }
  assert {
    condition     = split(",", aws_lambda_function.this.environment[0].variables["SPOTWRIGHT_PARAMETER_SERVERS"])[10] == "10.0.0.10"
    error_message = "The tenth goes after the second."
  }
}

run "a_package_takes_the_place_of_an_image" {
  variables {
    image_uri = null
    package   = { s3_bucket = "our-code", s3_key = "train.zip", handler = "train.handler", runtime = "python3.12" }
    timeout_s = 60
  }
  assert {
    condition     = aws_lambda_function.this.package_type == "Zip" && aws_lambda_function.this.handler == "train.handler" && aws_lambda_function.this.s3_key == "train.zip"
    error_message = "The package must be what the functions run."
  }
  assert {
    condition     = aws_lambda_function.this.image_uri == null && aws_lambda_function.this.timeout == 60
    error_message = "A package needs no image, and the timeout is the user's."
  }
}

run "too_little_memory_is_refused" {
  command = plan
  variables {
    functions = { memory_mb = 127, function_count = 29 }
  }
  expect_failures = [var.functions]
}

run "too_much_memory_is_refused" {
  command = plan
  variables {
    functions = { memory_mb = 10241, function_count = 29 }
  }
  expect_failures = [var.functions]
}

run "half_a_megabyte_is_refused" {
  command = plan
  variables {
    functions = { memory_mb = 128.5, function_count = 29 }
  }
  expect_failures = [var.functions]
}

run "no_function_is_refused" {
  command = plan
  variables {
    functions = { memory_mb = 128, function_count = 0 }
  }
  expect_failures = [var.functions]
}

run "half_a_function_is_refused" {
  command = plan
  variables {
    functions = { memory_mb = 128, function_count = 1.5 }
  }
  expect_failures = [var.functions]
}

run "an_image_and_a_package_are_refused" {
  command = plan
  variables {
    package = { s3_bucket = "our-code", s3_key = "train.zip", handler = "train.handler", runtime = "python3.12" }
  }
  expect_failures = [var.image_uri]
}

run "nothing_to_run_is_refused" {
  command = plan
  variables {
    image_uri = null
  }
  expect_failures = [var.image_uri]
}

run "a_timeout_of_nothing_is_refused" {
  command = plan
  variables {
    timeout_s = 0
  }
  expect_failures = [var.timeout_s]
}

run "a_timeout_beyond_lambda_is_refused" {
  command = plan
  variables {
    timeout_s = 901
  }
  expect_failures = [var.timeout_s]
}

run "the_module_s_own_environment_is_refused" {
  command = plan
  variables {
    environment = { SPOTWRIGHT_FLEET = "other" }
  }
  expect_failures = [var.environment]
}

run "no_parameter_server_is_refused" {
  command = plan
  variables {
    pools = {}
  }
  expect_failures = [var.pools]
}

run "a_pool_of_workers_is_refused" {
  command = plan
  variables {
    pools = {
      worker-m5-xlarge-use1-az1-on-demand = {
        role                   = "worker"
        instance_type          = "m5.xlarge"
        zone_id                = "use1-az1"
        market                 = "on-demand"
        node_count             = 1
        max_price_usd_per_hour = "0.192"
        efa_interfaces         = 0
      }
    }
  }
  expect_failures = [var.pools]
}
