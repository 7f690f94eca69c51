output "autoscaling_group_names" {
  description = "Auto Scaling group of each pool of workers."
  value       = module.fleet.autoscaling_group_names
}

output "parameter_server_private_ips" {
  description = "Address of each parameter server inside the VPC."
  value       = module.fleet.parameter_server_private_ips
}

output "node_tags" {
  description = "Tags that list the fleet's nodes."
  value       = module.fleet.node_tags
}

output "checkpoint_bucket" {
  description = "Bucket for checkpoints; null: none was asked for."
  value       = module.fleet.checkpoint_bucket
}
