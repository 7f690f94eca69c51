# The variables of fleet.auto.tfvars.json. The module checks their values.

variable "schema_version" {
  description = "Version of the generated file."
  type        = number
}

variable "fleet_name" {
  description = "Name of the fleet."
  type        = string
}

variable "plan_id" {
  description = "Which plan asked for this fleet."
  type        = string
}

variable "region" {
  description = "AWS region of every pool."
  type        = string
}

variable "cost_usd_low" {
  description = "Lower end of the job's predicted cost."
  type        = number
}

variable "cost_usd_high" {
  description = "Upper end of the job's predicted cost."
  type        = number
}

variable "pools" {
  description = "Instances to run, keyed by role, type, zone and market."
  type = map(object({
    role                   = string
    instance_type          = string
    zone_id                = string
    market                 = string
    node_count             = number
    max_price_usd_per_hour = string
    efa_interfaces         = number
  }))
}

variable "subnet_ids" {
  description = "Subnet of each zone that has a pool, by zone id. Nodes with several network cards get no public address: theirs needs a NAT gateway."
  type        = map(string)
}

variable "daemon_address" {
  description = "HOST:PORT of the Spotwright daemon, as the nodes reach it."
  type        = string
}

variable "ca_file" {
  description = "Path of the authority's certificate, ca.crt, that `spotwright certs init` wrote."
  type        = string
}

variable "permissions_boundary_arn" {
  description = "Managed policy that bounds the nodes' role; null: none."
  type        = string
  default     = null
}
