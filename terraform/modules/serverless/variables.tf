# What `spotwright plan` writes to fleet.auto.tfvars.json for a job that trains on functions. settings.tf has
# what a user may choose beside it. What is passed on as it is, the fleet's module checks.

variable "schema_version" {
  description = "Version of the generated variables."
  type        = number
  nullable    = false
}

variable "fleet_name" {
  description = "Name of the fleet, the job's name; the function is called by it."
  type        = string
  nullable    = false
}

variable "plan_id" {
  description = "Which plan asked for this fleet; a tag of everything that runs."
  type        = string
  nullable    = false
}

variable "region" {
  description = "AWS region of the functions and of every pool; the provider must be set to it."
  type        = string
  nullable    = false
}

variable "cost_usd_low" {
  description = "Lower end of the job's predicted cost; for people who review, not used by resources."
  type        = number
  nullable    = false
}

variable "cost_usd_high" {
  description = "Upper end of the job's predicted cost."
  type        = number
  nullable    = false
}

variable "pools" {
  description = "Parameter servers to run, keyed by role, type, zone and market; the functions are the workers."
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
    error_message = "Functions keep their parameters on a parameter server, and there is no pool of them: give the job one and plan again."
  }
  validation {
    condition     = alltrue([for p in var.pools : p.role == "ps"])
    error_message = "Functions are the workers of a serverless plan, and its pools are parameter servers. Wrong: ${join(", ", [for key, p in var.pools : key if p.role != "ps"])}."
  }
}

variable "functions" {
  description = "Memory of each function, and how many run at once."
  type = object({
    memory_mb      = number
    function_count = number
  })
  nullable = false
  validation {
    condition     = var.functions.memory_mb >= 128 && var.functions.memory_mb <= 10240 && floor(var.functions.memory_mb) == var.functions.memory_mb
    error_message = "functions.memory_mb is ${var.functions.memory_mb}, and Lambda has functions of 128 to 10240 MB, in whole MB."
  }
  validation {
    condition     = var.functions.function_count >= 1 && floor(var.functions.function_count) == var.functions.function_count
    error_message = "functions.function_count is ${var.functions.function_count}: it must be a whole number of at least 1."
  }
}
