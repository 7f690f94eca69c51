# What a function may do in the account: log, and keep checkpoints where there is a bucket for them.

locals {
  network_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]
  bucket_arns = [for bucket in module.fleet.checkpoint_bucket[*] : "arn:${data.aws_partition.this.partition}:s3:::${bucket}"]

  statements = concat(
    [
      {
        Sid       = "WriteLogs"
        Effect    = "Allow"
        Action    = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource  = ["${aws_cloudwatch_log_group.this.arn}:*"]
        Condition = null
      },
      {
        # Lambda itself joins the VPC under this role. EC2 lets it name no interface beforehand.
        Sid       = "JoinNetwork"
        Effect    = "Allow"
        Action    = local.network_actions
        Resource  = ["*"]
        Condition = null
      },
      {
        Sid       = "NotFromCode"
        Effect    = "Deny"
        Action    = local.network_actions
        Resource  = ["*"]
        Condition = { ArnEquals = { "lambda:SourceFunctionArn" = local.function_arn } }
      },
    ],
    [
      for arn in local.bucket_arns : {
        Sid       = "ListCheckpoints"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = [arn]
        Condition = null
      }
    ],
    [
      for arn in local.bucket_arns : {
        Sid       = "KeepCheckpoints"
        Effect    = "Allow"
        Action    = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        Resource  = ["${arn}/*"]
        Condition = null
      }
    ],
  )
}

resource "aws_iam_role" "this" {
  name_prefix          = "${substr(var.fleet_name, 0, 27)}-functions-" # 38 characters at most
  path                 = "/spotwright/"                                # as the fleet's module has it
  description          = "Functions of the Spotwright fleet ${var.fleet_name}"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = local.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  name = "functions"
  role = aws_iam_role.this.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [for s in local.statements : { for name, value in s : name => value if value != null }]
  })
}
