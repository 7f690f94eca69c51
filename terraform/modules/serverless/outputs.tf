output "function_name" {
  description = "Name of the function; invoke it once for each worker."
  value       = aws_lambda_function.this.function_name
}

output "function_arn" {
  description = "ARN of the function; whoever drives the job needs lambda:InvokeFunction on it."
  value       = aws_lambda_function.this.arn
}

output "function_count" {
  description = "How many functions run at once."
  value       = var.functions.function_count
}

output "function_role_name" {
  description = "IAM role of the functions; attach policies of your own to it."
  value       = aws_iam_role.this.name
}

output "function_log_group_name" {
  description = "Log group of the functions."
  value       = aws_cloudwatch_log_group.this.name
}

output "parameter_server_instance_ids" {
  description = "Instance id of each parameter server, by pool key and number (POOL/0)."
  value       = module.fleet.parameter_server_instance_ids
}

output "parameter_server_private_ips" {
  description = "Address of each parameter server inside the VPC, by pool key and number (POOL/0)."
  value       = module.fleet.parameter_server_private_ips
}

output "node_tags" {
  description = "Tags that all nodes of the fleet have and no others: the filter that lists them."
  value       = module.fleet.node_tags
}

output "security_group_id" {
  description = "Security group of functions and parameter servers."
  value       = module.fleet.security_group_id
}

output "checkpoint_bucket" {
  description = "Name of the bucket for checkpoints; null: none was asked for."
  value       = module.fleet.checkpoint_bucket
}

output "plan_id" {
  description = "Which plan asked for this fleet."
  value       = var.plan_id
}

output "cost_usd" {
  description = "Predicted cost of the whole job, from low to high."
  value       = module.fleet.cost_usd
}
