# Parameter servers: instances with a name of their own, since each holds a part of the model.

locals {
  parameter_server_nodes = merge([
    for key, p in local.parameter_servers : { for i in range(p.node_count) : "${key}/${i}" => merge(p, { key = key }) }
  ]...)
}

# The shape of each one's pool, under its own key: Terraform replaces by no other.
resource "terraform_data" "parameter_server" {
  for_each = local.parameter_server_nodes
  input    = terraform_data.shape[each.value.key].input
}

resource "aws_instance" "this" {
  for_each               = local.parameter_server_nodes
  ami                    = local.image.id
  instance_type          = each.value.instance_type
  subnet_id              = local.subnet_ids[each.value.zone_id]
  vpc_security_group_ids = [aws_security_group.this.id]
  iam_instance_profile   = aws_iam_instance_profile.this.name
  user_data_base64       = local.user_data_base64[each.value.key]
  tags                   = local.node_tags[each.value.key]
  volume_tags            = local.pool_tags[each.value.key]

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
    instance_metadata_tags      = "enabled"
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.root_volume_gib
    encrypted   = true
  }

  dynamic "instance_market_options" {
    for_each = each.value.market == "spot" ? [each.value.max_price_usd_per_hour] : []
    content {
      market_type = "spot"
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
        max_price                      = instance_market_options.value
      }
    }
  }

  lifecycle {
    # Emulators of AWS do not tell that an instance is a spot one, which would replace it at every plan.
    # User data is in the shape; another Terraform may compress the same text otherwise.
    ignore_changes       = [instance_market_options, user_data_base64]
    replace_triggered_by = [terraform_data.parameter_server[each.key]]
  }

  depends_on = [aws_iam_role_policy.this, aws_vpc_security_group_egress_rule.this, aws_vpc_security_group_ingress_rule.this]
}
