# What outlives a node: checkpoints and logs, both only if asked for.

resource "aws_s3_bucket" "this" {
  count         = var.create_checkpoint_bucket ? 1 : 0
  bucket_prefix = "spotwright-${substr(var.fleet_name, 0, 25)}-" # 37 characters at most
  tags          = local.fleet_tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  count                   = var.create_checkpoint_bucket ? 1 : 0
  bucket                  = aws_s3_bucket.this[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  count  = var.create_checkpoint_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].id
  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

# Parts of uploads that a lost node never finished cannot be seen, and are paid for.
resource "aws_s3_bucket_lifecycle_configuration" "this" {
  count  = var.create_checkpoint_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].id
  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}

resource "aws_s3_bucket_policy" "this" {
  count  = var.create_checkpoint_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyByTls"
      Effect    = "Deny"
      Action    = "s3:*"
      Principal = "*"
      Resource  = [aws_s3_bucket.this[0].arn, "${aws_s3_bucket.this[0].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
  # S3 refuses two changes of a bucket's access at once.
  depends_on = [aws_s3_bucket_public_access_block.this]
}

resource "aws_cloudwatch_log_group" "this" {
  count             = var.log_retention_days == null ? 0 : 1
  name              = "/spotwright/${var.fleet_name}"
  retention_in_days = var.log_retention_days
  tags              = local.fleet_tags
}
