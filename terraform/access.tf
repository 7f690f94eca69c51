# What a node may do in the account: read its own certificate, and write to the fleet's bucket and log group.

locals {
  # Apart from everybody else's: whoever may make the roles of a fleet called prod gets no hold of prod-deploy.
  iam_path = "/spotwright/"

  account = "${data.aws_region.this.id}:${data.aws_caller_identity.this.account_id}"
  certificates = {
    ssm = {
      action = "ssm:GetParameter"
      arn    = "arn:${data.aws_partition.this.partition}:ssm:${local.account}:parameter/spotwright/${var.fleet_name}/agents/*"
    }
    secretsmanager = {
      action = "secretsmanager:GetSecretValue"
      arn    = "arn:${data.aws_partition.this.partition}:secretsmanager:${local.account}:secret:spotwright/${var.fleet_name}/agents/*"
    }
  }

  statements = concat(
    [
      for agent in var.agent[*] : {
        Sid      = "ReadOwnCertificate"
        Effect   = "Allow"
        Action   = [local.certificates[agent.certificate_store].action]
        Resource = [local.certificates[agent.certificate_store].arn]
        # IAM puts the asking instance in place of the variable: no node can read another's key.
        Condition = { StringEquals = { "aws:ResourceTag/SpotwrightInstance" = "$${ec2:SourceInstanceARN}" } }
      }
    ],
    [
      for bucket in aws_s3_bucket.this : {
        Sid       = "ListCheckpoints"
        Effect    = "Allow"
        Action    = ["s3:ListBucket"]
        Resource  = [bucket.arn]
        Condition = null
      }
    ],
    [
      for bucket in aws_s3_bucket.this : {
        Sid       = "KeepCheckpoints"
        Effect    = "Allow"
        Action    = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        Resource  = ["${bucket.arn}/*"]
        Condition = null
      }
    ],
    [
      for group in aws_cloudwatch_log_group.this : {
        Sid       = "WriteLogs"
        Effect    = "Allow"
        Action    = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource  = ["${group.arn}:*"]
        Condition = null
      }
    ],
  )
}

resource "aws_iam_role" "this" {
  name_prefix          = "${substr(var.fleet_name, 0, 37)}-"
  path                 = local.iam_path
  description          = "Nodes of the Spotwright fleet ${var.fleet_name}"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = local.fleet_tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.${data.aws_partition.this.dns_suffix}" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  count = var.agent != null || var.create_checkpoint_bucket || var.log_retention_days != null ? 1 : 0
  name  = "fleet"
  role  = aws_iam_role.this.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [for s in local.statements : { for name, value in s : name => value if value != null }]
  })
}

resource "aws_iam_instance_profile" "this" {
  name_prefix = "${var.fleet_name}-"
  path        = local.iam_path
  role        = aws_iam_role.this.name
  tags        = local.fleet_tags
}
