output "function_name" {
  description = "Name of the function; invoke it once for each worker."
  value       = module.fleet.function_name
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
