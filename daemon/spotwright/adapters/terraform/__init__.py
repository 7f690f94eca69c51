"""Plans as variables of the Terraform module."""
