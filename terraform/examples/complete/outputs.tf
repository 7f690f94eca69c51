output "fleet" {
  description = "Where the fleet's parts are."
  value = {
    autoscaling_group_names      = module.fleet.autoscaling_group_names
    parameter_server_private_ips = module.fleet.parameter_server_private_ips
    checkpoint_bucket            = module.fleet.checkpoint_bucket
    log_group_name               = module.fleet.log_group_name
    instance_role_arn            = module.fleet.instance_role_arn
    security_group_id            = module.fleet.security_group_id
    node_count                   = module.fleet.node_count
    cost_usd                     = module.fleet.cost_usd
  }
}
