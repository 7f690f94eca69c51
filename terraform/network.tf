# Where nodes are, and who may talk to them: each other, and nobody else.

locals {
  zone_ids = toset([for p in var.pools : p.zone_id])
  vpc_id = (
    var.vpc_id != null ? var.vpc_id :
    length(var.subnet_ids) > 0 ? sort([for subnet in data.aws_subnet.named : subnet.vpc_id])[0] : data.aws_vpc.default[0].id
  )
  found_subnet_ids = {
    for zone in local.zone_ids : zone => contains(keys(var.subnet_ids), zone) ? [var.subnet_ids[zone]] : sort(data.aws_subnets.found[zone].ids)
  }
  subnet_ids = { for zone, subnet in terraform_data.subnet : zone => subnet.input.id }
}

data "aws_vpc" "default" {
  count   = var.vpc_id == null && length(var.subnet_ids) == 0 ? 1 : 0
  default = true
}

data "aws_subnet" "named" {
  for_each = var.subnet_ids
  id       = each.value
  lifecycle {
    postcondition {
      condition     = self.availability_zone_id == each.key
      error_message = "subnet_ids says that ${each.value} is in ${each.key}, and it is in ${self.availability_zone_id}."
    }
  }
}

data "aws_subnets" "found" {
  for_each = setsubtract(local.zone_ids, keys(var.subnet_ids))
  filter {
    name   = "vpc-id"
    values = [local.vpc_id]
  }
  filter {
    name   = "availability-zone-id"
    values = [each.key]
  }
  dynamic "filter" {
    for_each = data.aws_vpc.default
    content {
      name   = "default-for-az"
      values = ["true"]
    }
  }
}

# A zone keeps the subnet it began with: one that somebody makes beside it must not move nodes that run.
resource "terraform_data" "subnet" {
  for_each         = local.zone_ids
  input            = { id = length(local.found_subnet_ids[each.key]) == 1 ? local.found_subnet_ids[each.key][0] : null }
  triggers_replace = [local.vpc_id, try(var.subnet_ids[each.key], null)]
  lifecycle {
    ignore_changes = [input]
  }
}

resource "aws_security_group" "this" {
  name_prefix = "spotwright-${var.fleet_name}-" # of its own no name may begin with sg-
  description = "Nodes of the Spotwright fleet ${var.fleet_name}"
  vpc_id      = local.vpc_id
  tags        = local.fleet_tags
  lifecycle {
    create_before_destroy = true
    precondition {
      condition     = alltrue([for subnet in data.aws_subnet.named : subnet.vpc_id == local.vpc_id])
      error_message = "All subnet_ids must be in one VPC, that of vpc_id if it is set. Not in ${local.vpc_id}: ${join(", ", [for subnet in data.aws_subnet.named : subnet.id if subnet.vpc_id != local.vpc_id])}."
    }
  }
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  security_group_id            = aws_security_group.this.id
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = "-1"
  tags                         = local.fleet_tags
}

resource "aws_vpc_security_group_egress_rule" "this" {
  for_each = {
    itself = { group_id = aws_security_group.this.id, ipv4 = null, ipv6 = null } # EFA asks for it by name
    ipv4   = { group_id = null, ipv4 = "0.0.0.0/0", ipv6 = null }
    ipv6   = { group_id = null, ipv4 = null, ipv6 = "::/0" }
  }
  security_group_id            = aws_security_group.this.id
  referenced_security_group_id = each.value.group_id
  cidr_ipv4                    = each.value.ipv4
  cidr_ipv6                    = each.value.ipv6
  ip_protocol                  = "-1"
  tags                         = local.fleet_tags
}

resource "aws_placement_group" "this" {
  for_each = toset([for p in local.workers : p.zone_id if var.cluster_placement_group])
  name     = "${var.fleet_name}-${each.key}"
  strategy = "cluster"
  tags     = local.fleet_tags
}
