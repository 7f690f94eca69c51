# No output lists the nodes of the workers' groups: they come and go, and each change would show up in a plan.

output "autoscaling_group_names" {
  description = "Auto Scaling group of each pool of workers, by pool key."
  value       = { for key, group in aws_autoscaling_group.this : key => group.name }
}

output "parameter_server_instance_ids" {
  description = "Instance id of each parameter server, by pool key and number (POOL/0)."
  value       = { for key, instance in aws_instance.this : key => instance.id }
}

output "parameter_server_private_ips" {
  description = "Address of each parameter server inside the VPC, by pool key and number (POOL/0)."
  value       = { for key, instance in aws_instance.this : key => instance.private_ip }
}

output "node_tags" {
  description = "Tags that all nodes of the fleet have and no others: the filter that lists them."
  value       = { Fleet = var.fleet_name }
}

output "node_count" {
  description = "Nodes wanted in all."
  value       = sum([for p in var.pools : p.node_count])
}

output "security_group_id" {
  description = "Security group of every node; give it access to what the fleet must reach."
  value       = aws_security_group.this.id
}

output "subnet_ids" {
  description = "Subnet of each zone that has a pool, by zone id."
  value       = local.subnet_ids
}

output "instance_role_name" {
  description = "IAM role of every node; attach policies of your own to it."
  value       = aws_iam_role.this.name
}

output "instance_role_arn" {
  description = "ARN of the IAM role of every node."
  value       = aws_iam_role.this.arn
}

output "image_id" {
  description = "Image that the nodes are started from."
  value       = local.image.id
}

output "checkpoint_bucket" {
  description = "Name of the bucket for checkpoints; null: none was asked for."
  value       = one(aws_s3_bucket.this[*].bucket)
}

output "log_group_name" {
  description = "Log group that the nodes may write to; null: none was asked for."
  value       = one(aws_cloudwatch_log_group.this[*].name)
}

output "plan_id" {
  description = "Which plan asked for this fleet."
  value       = var.plan_id
}

output "cost_usd" {
  description = "Predicted cost of the whole job, from low to high."
  value       = { low = var.cost_usd_low, high = var.cost_usd_high }
}
