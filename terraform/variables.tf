variable "schema_version" {
  description = "Version of the generated variables; this module reads version 1."
  type        = number
  validation {
    condition     = var.schema_version == 1
    error_message = "This module reads schema_version 1: upgrade it, or plan with a matching Spotwright."
  }
}

variable "fleet_name" {
  description = "Name of the fleet, the job's name; part of every resource name and tag."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.fleet_name))
    error_message = "fleet_name must be 1 to 63 lower-case letters, digits and hyphens."
  }
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
  description = "Lower end of the job's predicted cost; for people who review, not used by resources."
  type        = number
}

variable "cost_usd_high" {
  description = "Upper end of the job's predicted cost."
  type        = number
}

variable "pools" {
  description = "Instances to run, keyed by role, type, zone and market; written by `spotwright plan`."
  type = map(object({
    role                   = string
    instance_type          = string
    zone_id                = string
    market                 = string
    node_count             = number
    max_price_usd_per_hour = string
    efa_interfaces         = number
  }))
  validation {
    condition     = alltrue([for p in var.pools : p.node_count >= 1 && floor(p.node_count) == p.node_count])
    error_message = "Each pool needs a whole node_count >= 1; leave out pools with no nodes. Wrong: ${join(", ", [for k, p in var.pools : k if p.node_count < 1 || floor(p.node_count) != p.node_count])}"
  }
  validation {
    condition     = alltrue([for p in var.pools : contains(["spot", "on-demand"], p.market)])
    error_message = "A market is spot or on-demand. Wrong: ${join(", ", [for k, p in var.pools : k if !contains(["spot", "on-demand"], p.market)])}"
  }
  validation {
    condition     = alltrue([for p in var.pools : contains(["worker", "ps"], p.role)])
    error_message = "A role is worker or ps. Wrong: ${join(", ", [for k, p in var.pools : k if !contains(["worker", "ps"], p.role)])}"
  }
  validation {
    condition = alltrue([
      for k, p in var.pools : k == "${p.role}-${replace(p.instance_type, ".", "-")}-${p.zone_id}-${p.market}"
    ])
    error_message = "A pool's key is role-type-zone-market with dots as hyphens, so that a replan changes counts and never identity."
  }
}
