# What `spotwright plan` writes to fleet.auto.tfvars.json. settings.tf has what a user may choose beside it.

locals {
  # us-east-1 -> use1, ap-southeast-2 -> apse2, us-gov-west-1 -> usgw1: how AWS makes zone ids.
  zone_prefix = replace(var.region, "/([nsewcg])(?:orth|outh|ast|est|entral|ov)|-/", "$1")
}

variable "schema_version" {
  description = "Version of the generated variables; this module reads version 1."
  type        = number
  nullable    = false
  validation {
    condition     = var.schema_version == 1
    error_message = "This module reads schema_version 1 and the file has ${var.schema_version}: use the module of the Spotwright that wrote the file, or plan again with the Spotwright of this module."
  }
}

variable "fleet_name" {
  description = "Name of the fleet, the job's name; part of every resource name and tag."
  type        = string
  nullable    = false
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.fleet_name))
    error_message = "fleet_name must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end."
  }
}

variable "plan_id" {
  description = "Which plan asked for this fleet; a tag of everything that runs."
  type        = string
  nullable    = false
  validation {
    condition     = trimspace(var.plan_id) != "" && can(regex(local.tag_value, var.plan_id))
    error_message = "plan_id must be 1 to 256 letters, digits, spaces and _ . : / = + - @: it says in a tag which plan asked for this fleet."
  }
}

variable "region" {
  description = "AWS region of every pool; the provider must be set to it."
  type        = string
  nullable    = false
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region must be the name of an AWS region, such as us-east-1."
  }
}

variable "cost_usd_low" {
  description = "Lower end of the job's predicted cost; for people who review, not used by resources."
  type        = number
  nullable    = false
  validation {
    condition     = var.cost_usd_low >= 0
    error_message = "cost_usd_low must not be negative."
  }
}

variable "cost_usd_high" {
  description = "Upper end of the job's predicted cost."
  type        = number
  nullable    = false
  validation {
    condition     = var.cost_usd_high >= var.cost_usd_low
    error_message = "cost_usd_high must not be less than cost_usd_low."
  }
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
  nullable = false

  validation {
    condition     = length(var.pools) > 0
    error_message = "There must be at least one pool; `terraform destroy` ends a fleet."
  }
  validation {
    condition     = alltrue([for p in var.pools : try(alltrue([for value in values(p) : value != null]), false)])
    error_message = "Nothing of a pool may be null. Wrong: ${join(", ", [for key, p in var.pools : key if !try(alltrue([for value in values(p) : value != null]), false)])}."
  }
  validation {
    condition = alltrue([
      for key, p in var.pools : try(key == "${p.role}-${replace(p.instance_type, ".", "-")}-${p.zone_id}-${p.market}", true)
    ])
    error_message = "A pool's key is role-type-zone-market with dots as hyphens, so that a replan changes counts and never identity. Wrong: ${join(", ", [
      for key, p in var.pools : key if try(key != "${p.role}-${replace(p.instance_type, ".", "-")}-${p.zone_id}-${p.market}", false)
    ])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : try(contains(["worker", "ps"], p.role), false)])
    error_message = "A role is worker or ps. Wrong: ${join(", ", [for key, p in var.pools : key if !try(contains(["worker", "ps"], p.role), false)])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : try(contains(["spot", "on-demand"], p.market), false)])
    error_message = "A market is spot or on-demand. Wrong: ${join(", ", [for key, p in var.pools : key if !try(contains(["spot", "on-demand"], p.market), false)])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : try(p.node_count >= 1 && floor(p.node_count) == p.node_count, false)])
    error_message = "Each pool needs a whole node_count >= 1; leave out pools with no nodes. Wrong: ${join(", ", [for key, p in var.pools : key if !try(p.node_count >= 1 && floor(p.node_count) == p.node_count, false)])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : can(regex("^[a-z0-9-]+[.][a-z0-9-]+$", p.instance_type))])
    error_message = "An instance_type is a family, a dot and a size, such as g5.xlarge. Wrong: ${join(", ", [for key, p in var.pools : key if !can(regex("^[a-z0-9-]+[.][a-z0-9-]+$", p.instance_type))])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : can(regex("^${local.zone_prefix}-([a-z]+[0-9]+-)?az[0-9]+$", p.zone_id))])
    error_message = "Zone ids of ${var.region} look like ${local.zone_prefix}-az1. Wrong: ${join(", ", [for key, p in var.pools : key if !can(regex("^${local.zone_prefix}-([a-z]+[0-9]+-)?az[0-9]+$", p.zone_id))])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : can(regex("^[0-9]+([.][0-9]+)?$", p.max_price_usd_per_hour)) && try(tonumber(p.max_price_usd_per_hour) > 0, false)])
    error_message = "A max_price_usd_per_hour is a positive decimal in quotes, such as \"0.52\", with no sign, unit or exponent. Wrong: ${join(", ", [for key, p in var.pools : key if !(can(regex("^[0-9]+([.][0-9]+)?$", p.max_price_usd_per_hour)) && try(tonumber(p.max_price_usd_per_hour) > 0, false))])}."
  }
  validation {
    condition     = alltrue([for p in var.pools : try(contains(range(33), p.efa_interfaces), false)])
    error_message = "An efa_interfaces is a whole number from 0 to 32. Wrong: ${join(", ", [for key, p in var.pools : key if !try(contains(range(33), p.efa_interfaces), false)])}."
  }
  validation {
    condition     = var.allow_spot_parameter_servers || alltrue([for p in var.pools : try(p.role != "ps" || p.market != "spot", true)])
    error_message = "Parameter servers are rented on-demand: one that is interrupted stops the whole job. Set allow_spot_parameter_servers to have them all the same. Wrong: ${join(", ", [for key, p in var.pools : key if try(p.role == "ps" && p.market == "spot", false)])}."
  }
}
