# What is rented for a fleet, asserted on what the provider is told; nothing here reaches AWS.

mock_provider "aws" {
  source = "./tests/aws"
}

variables {
  schema_version = 1
  fleet_name     = "resnet50"
  plan_id        = "p-1"
  region         = "us-east-1"
  cost_usd_low   = 31
  cost_usd_high  = 38.5
  pools = {
    ps-m5-xlarge-use1-az4-on-demand = {
      role       = "ps", instance_type = "m5.xlarge", zone_id = "use1-az4", market = "on-demand",
      node_count = 2, max_price_usd_per_hour = "0.192", efa_interfaces = 0
    }
    worker-g4dn-xlarge-use1-az4-on-demand = {
      role       = "worker", instance_type = "g4dn.xlarge", zone_id = "use1-az4", market = "on-demand",
      node_count = 1, max_price_usd_per_hour = "0.526", efa_interfaces = 0
    }
    worker-g5-xlarge-use1-az4-spot = {
      role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
      node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
    }
    worker-g5-xlarge-use1-az6-spot = {
      role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az6", market = "spot",
      node_count = 3, max_price_usd_per_hour = "0.61", efa_interfaces = 0
    }
  }
}

run "a_fleet_with_no_settings" {
  assert {
    condition     = { for key, group in aws_autoscaling_group.this : key => [group.min_size, group.desired_capacity, group.max_size] } == { worker-g4dn-xlarge-use1-az4-on-demand = [0, 1, 1], worker-g5-xlarge-use1-az4-spot = [0, 6, 6], worker-g5-xlarge-use1-az6-spot = [0, 3, 3] }
    error_message = "Each pool of workers is a group that keeps the planned count."
  }
  assert {
    condition     = keys(aws_instance.this) == ["ps-m5-xlarge-use1-az4-on-demand/0", "ps-m5-xlarge-use1-az4-on-demand/1"]
    error_message = "Each parameter server has a key of its own."
  }
  assert {
    condition = { for key, template in aws_launch_template.this : key => [
      for m in template.instance_market_options : [m.market_type, m.spot_options[0].spot_instance_type, m.spot_options[0].instance_interruption_behavior, m.spot_options[0].max_price]
      ] } == {
      worker-g4dn-xlarge-use1-az4-on-demand = []
      worker-g5-xlarge-use1-az4-spot        = [["spot", "one-time", "terminate", "0.52"]]
      worker-g5-xlarge-use1-az6-spot        = [["spot", "one-time", "terminate", "0.61"]]
    }
    error_message = "Spot pools have their ceiling, and on-demand pools no market."
  }
  assert {
    condition = alltrue([
      for m in concat([for t in aws_launch_template.this : t.metadata_options[0]], [for i in aws_instance.this : i.metadata_options[0]]) :
      [m.http_tokens, m.http_put_response_hop_limit, m.instance_metadata_tags] == ["required", 1, "enabled"]
    ])
    error_message = "The metadata service asks for a token, answers nobody beyond the node, and tells tags."
  }
  assert {
    condition = alltrue(concat(
      [for t in aws_launch_template.this : t.block_device_mappings[0].device_name == "/dev/sda1" && t.block_device_mappings[0].ebs[0].encrypted == "true" && t.block_device_mappings[0].ebs[0].volume_size == 200],
      [for i in aws_instance.this : i.root_block_device[0].encrypted && i.root_block_device[0].volume_size == 200],
    ))
    error_message = "Root volumes are encrypted."
  }
  assert {
    condition     = alltrue([for t in aws_launch_template.this : t.vpc_security_group_ids == toset([aws_security_group.this.id]) && length(t.network_interfaces) == 0 && t.image_id == "ami-0123456789abcdef0"])
    error_message = "Without EFA a node has the fleet's security group and one plain interface."
  }
  assert {
    condition     = alltrue([for g in aws_autoscaling_group.this : g.vpc_zone_identifier == toset(["subnet-a"]) && g.suspended_processes == toset(["AZRebalance"]) && !g.capacity_rebalance && g.force_delete && g.protect_from_scale_in != true && g.placement_group == null])
    error_message = "A group stays in the subnet of its zone, and nothing but the plan changes it."
  }
  assert {
    condition     = length(aws_placement_group.this) + length(aws_s3_bucket.this) + length(aws_cloudwatch_log_group.this) + length(aws_iam_role_policy.this) == 0
    error_message = "What was not asked for is not made, and a node may do nothing."
  }
  assert {
    condition     = alltrue([for t in aws_launch_template.this : t.user_data == null])
    error_message = "There is no user data if nobody asked for some."
  }
  assert {
    condition     = [output.node_count, output.plan_id, output.cost_usd, output.node_tags] == [12, "p-1", { low = 31, high = 38.5 }, { Fleet = "resnet50" }] && output.checkpoint_bucket == null && output.log_group_name == null
    error_message = "Outputs tell the plan."
  }
}

run "nobody_but_the_fleet_can_reach_a_node" {
  assert {
    condition     = aws_vpc_security_group_ingress_rule.this.referenced_security_group_id == aws_security_group.this.id && aws_vpc_security_group_ingress_rule.this.cidr_ipv4 == null && aws_vpc_security_group_ingress_rule.this.cidr_ipv6 == null
    error_message = "What comes in comes from the group itself."
  }
  assert {
    condition     = aws_vpc_security_group_egress_rule.this["itself"].referenced_security_group_id == aws_security_group.this.id && aws_vpc_security_group_egress_rule.this["ipv4"].cidr_ipv4 == "0.0.0.0/0" && aws_vpc_security_group_egress_rule.this["ipv6"].cidr_ipv6 == "::/0"
    error_message = "What goes out may go to the group itself, which EFA asks for, and to the world."
  }
}

run "a_replan_changes_no_template" {
  variables {
    plan_id = "p-2"
    tags    = { Team = "vision/é 7" }
  }
  assert {
    condition = alltrue([
      for s in aws_launch_template.this["worker-g5-xlarge-use1-az4-spot"].tag_specifications :
      s.tags == tomap({ Fleet = "resnet50", Pool = "worker-g5-xlarge-use1-az4-spot", Role = "worker", Team = "vision/é 7" })
    ]) && toset(aws_launch_template.this["worker-g5-xlarge-use1-az4-spot"].tag_specifications[*].resource_type) == toset(["instance", "volume"])
    error_message = "A template's tags have no Plan, which is new at each replan."
  }
  assert {
    condition     = { for t in aws_autoscaling_group.this["worker-g5-xlarge-use1-az4-spot"].tag : t.key => t.value if t.propagate_at_launch } == { Fleet = "resnet50", Plan = "p-2", Pool = "worker-g5-xlarge-use1-az4-spot", Role = "worker", Team = "vision/é 7" }
    error_message = "The nodes of a group have all tags."
  }
  assert {
    condition     = aws_instance.this["ps-m5-xlarge-use1-az4-on-demand/0"].tags == tomap({ Fleet = "resnet50", Plan = "p-2", Pool = "ps-m5-xlarge-use1-az4-on-demand", Role = "ps", Team = "vision/é 7" })
    error_message = "Parameter servers have all tags."
  }
}

run "spot_nodes_at_risk_are_replaced_if_asked" {
  command = plan
  variables {
    capacity_rebalance = true
  }
  assert {
    condition     = { for key, group in aws_autoscaling_group.this : key => group.capacity_rebalance } == { worker-g4dn-xlarge-use1-az4-on-demand = false, worker-g5-xlarge-use1-az4-spot = true, worker-g5-xlarge-use1-az6-spot = true }
    error_message = "Only spot nodes can be at risk."
  }
}

run "workers_of_a_zone_are_placed_together_if_asked" {
  variables {
    cluster_placement_group = true
  }
  assert {
    condition     = { for zone, group in aws_placement_group.this : zone => group.strategy } == { use1-az4 = "cluster", use1-az6 = "cluster" }
    error_message = "There is one placement group in each zone."
  }
  assert {
    condition     = alltrue([for group in aws_autoscaling_group.this : !group.force_delete])
    error_message = "Nodes have ended before their placement group goes."
  }
  assert {
    condition     = { for key, group in aws_autoscaling_group.this : key => group.placement_group } == { worker-g4dn-xlarge-use1-az4-on-demand = "resnet50-use1-az4", worker-g5-xlarge-use1-az4-spot = "resnet50-use1-az4", worker-g5-xlarge-use1-az6-spot = "resnet50-use1-az6" }
    error_message = "Each group is in that of its zone."
  }
}

run "subnets_of_ones_own" {
  command = plan
  variables {
    subnet_ids = { use1-az4 = "subnet-own" }
  }
  assert {
    condition     = output.subnet_ids == { use1-az4 = "subnet-own", use1-az6 = "subnet-a" } && aws_security_group.this.vpc_id == "vpc-own"
    error_message = "A zone has the subnet that was named, else the one of the same VPC."
  }
}

run "a_fleet_keeps_its_image_and_its_subnets_whatever_is_new_or_gone" {
  override_data {
    target = data.aws_ami_ids.found
    values = { ids = [] }
  }
  override_data {
    target = data.aws_subnets.found
    values = { ids = ["subnet-0", "subnet-a"] }
  }
  assert {
    condition     = output.image_id == "ami-0123456789abcdef0" && output.subnet_ids == { use1-az4 = "subnet-a", use1-az6 = "subnet-a" }
    error_message = "What is looked up was looked up once."
  }
}
