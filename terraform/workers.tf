# Workers: for each pool a launch template that is never edited, and an Auto Scaling group that keeps its
# nodes running. Not an EC2 Fleet or a Spot Fleet: the provider replaces those at every plan.

# What a launch template has beside the shape. When it changes there is a new template for the nodes to come,
# and those that run stay. A new template and not a new version: emulators of AWS cannot start nodes from those.
resource "terraform_data" "terms" {
  for_each = local.workers
  input = {
    max_price_usd_per_hour = each.value.max_price_usd_per_hour
    metadata_hop_limit     = var.metadata_hop_limit
    tags                   = local.pool_tags[each.key]
  }
}

resource "aws_launch_template" "this" {
  for_each      = local.workers
  name_prefix   = "${substr("${var.fleet_name}-${each.key}", 0, 98)}-"
  description   = "Workers of the Spotwright fleet ${var.fleet_name}"
  image_id      = local.image.id
  instance_type = each.value.instance_type
  user_data     = local.user_data_base64[each.key]

  vpc_security_group_ids = each.value.efa_interfaces == 0 ? [aws_security_group.this.id] : null

  iam_instance_profile {
    name = aws_iam_instance_profile.this.name
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
    instance_metadata_tags      = "enabled"
  }

  block_device_mappings {
    device_name = local.image.root_device_name
    ebs {
      volume_type           = "gp3"
      volume_size           = var.root_volume_gib
      encrypted             = true
      delete_on_termination = true
    }
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

  # One interface on each network card; only the first card has a device 0.
  dynamic "network_interfaces" {
    for_each = range(each.value.efa_interfaces)
    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = "efa"
      security_groups       = [aws_security_group.this.id]
      delete_on_termination = true
    }
  }

  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume"])
    content {
      resource_type = tag_specifications.value
      tags          = local.pool_tags[each.key]
    }
  }

  lifecycle {
    create_before_destroy = true
    # The shape has it; another Terraform may compress the same text otherwise.
    ignore_changes       = [user_data]
    replace_triggered_by = [terraform_data.shape[each.key], terraform_data.terms[each.key]]
  }
}

resource "aws_autoscaling_group" "this" {
  for_each            = local.workers
  name_prefix         = "${var.fleet_name}-${each.key}-"
  min_size            = 0
  max_size            = each.value.node_count
  desired_capacity    = each.value.node_count
  vpc_zone_identifier = [local.subnet_ids[each.value.zone_id]]
  placement_group     = var.cluster_placement_group ? aws_placement_group.this[each.value.zone_id].name : null
  capacity_rebalance  = var.capacity_rebalance && each.value.market == "spot"
  suspended_processes = ["AZRebalance"]
  # Forced, AWS deletes the group before its nodes have ended, and a placement group that they are still in stays.
  force_delete = !var.cluster_placement_group
  # Not waited for: a group whose nodes do not come in time would be marked for replacement, and the next
  # apply would end the nodes that did come.
  wait_for_capacity_timeout = "0"

  launch_template {
    id      = aws_launch_template.this[each.key].id
    version = aws_launch_template.this[each.key].latest_version
  }

  dynamic "tag" {
    for_each = local.node_tags[each.key]
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    create_before_destroy = true
    replace_triggered_by  = [terraform_data.shape[each.key]]
  }

  # A node needs the way out and its rights from its first second on.
  depends_on = [aws_iam_role_policy.this, aws_vpc_security_group_egress_rule.this, aws_vpc_security_group_ingress_rule.this]
}
