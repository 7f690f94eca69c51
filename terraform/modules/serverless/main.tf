# Functions that train, and the parameter servers that they share a model through.

locals {
  tags         = merge(var.tags, { Fleet = var.fleet_name, Role = "worker" })
  function_arn = "arn:${data.aws_partition.this.partition}:lambda:${var.region}:${data.aws_caller_identity.this.account_id}:function:${var.fleet_name}"
  # By number and not by key, in whose order 10 goes before 2.
  addresses = flatten([
    for key in sort(keys(var.pools)) : [for i in range(var.pools[key].node_count) : module.fleet.parameter_server_private_ips["${key}/${i}"]]
  ])
}

data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

module "fleet" {
  source = "../.."

  schema_version = var.schema_version
  fleet_name     = var.fleet_name
  plan_id        = var.plan_id
  region         = var.region
  cost_usd_low   = var.cost_usd_low
  cost_usd_high  = var.cost_usd_high
  pools          = var.pools

  ami_id                       = var.ami_id
  ami_names                    = var.ami_names
  root_volume_gib              = var.root_volume_gib
  allow_spot_parameter_servers = var.allow_spot_parameter_servers
  vpc_id                       = var.vpc_id
  subnet_ids                   = var.subnet_ids
  tags                         = var.tags
  user_data                    = var.user_data
  agent                        = var.agent
  log_retention_days           = var.log_retention_days
  create_checkpoint_bucket     = var.create_checkpoint_bucket
  permissions_boundary_arn     = var.permissions_boundary_arn
  metadata_hop_limit           = var.metadata_hop_limit
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.fleet_name}"
  retention_in_days = var.log_retention_days
  tags              = local.tags
}

resource "aws_lambda_function" "this" {
  function_name = var.fleet_name
  description   = "Workers of the Spotwright fleet ${var.fleet_name}"
  role          = aws_iam_role.this.arn
  memory_size   = var.functions.memory_mb
  timeout       = var.timeout_s
  tags          = merge(local.tags, { Plan = var.plan_id })

  # As many as were planned and no more: another one would be paid for, and would find no part of the batch.
  reserved_concurrent_executions = var.functions.function_count

  package_type = var.package == null ? "Image" : "Zip"
  image_uri    = var.image_uri
  s3_bucket    = try(var.package.s3_bucket, null)
  s3_key       = try(var.package.s3_key, null)
  handler      = try(var.package.handler, null)
  runtime      = try(var.package.runtime, null)

  vpc_config {
    subnet_ids         = distinct(values(module.fleet.subnet_ids))
    security_group_ids = [module.fleet.security_group_id]
  }

  environment {
    # The plan's name is none of them: it is new at each replan, and would restart every function.
    variables = merge(
      var.environment,
      {
        SPOTWRIGHT_FLEET             = var.fleet_name
        SPOTWRIGHT_PARAMETER_SERVERS = join(",", local.addresses)
      },
      var.create_checkpoint_bucket ? { SPOTWRIGHT_CHECKPOINT_BUCKET = module.fleet.checkpoint_bucket } : {},
    )
  }

  lifecycle {
    # Emulators of AWS tell an empty one of every image, which would be a change at every plan.
    ignore_changes = [image_config]
  }

  depends_on = [aws_cloudwatch_log_group.this, aws_iam_role_policy.this]
}

# A worker that died is replaced by whoever drives the job, who knows what it was working on. Lambda does not.
resource "aws_lambda_function_event_invoke_config" "this" {
  function_name                = aws_lambda_function.this.function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60 # nobody wants a worker that starts an hour late
}
