# What a user may choose beside the plan. What the functions run must be named; the rest may be left out.

variable "image_uri" {
  description = "Container image that the functions run, in an ECR repository of the same region; null: package names what they run."
  type        = string
  default     = null
  validation {
    condition     = (var.image_uri == null) != (var.package == null)
    error_message = "The functions run either a container image or a package: set ${var.image_uri == null ? "image_uri or package" : "image_uri or package, and not both"}."
  }
}

variable "package" {
  description = "Package that the functions run: a .zip file in a bucket, the handler in it and its runtime, such as python3.12; null: image_uri names what they run."
  type = object({
    s3_bucket = string
    s3_key    = string
    handler   = string
    runtime   = string
  })
  default = null
}

variable "timeout_s" {
  description = "After how long Lambda ends a function that still runs."
  type        = number
  default     = 900
  nullable    = false
  validation {
    condition     = var.timeout_s >= 1 && var.timeout_s <= 900 && floor(var.timeout_s) == var.timeout_s
    error_message = "timeout_s is ${var.timeout_s}, and Lambda lets a function run for 1 to 900 whole seconds."
  }
}

variable "environment" {
  description = "More environment variables of the functions. They are no place for secrets: the state holds them."
  type        = map(string)
  default     = {}
  nullable    = false
  validation {
    condition     = length([for name in keys(var.environment) : name if startswith(name, "SPOTWRIGHT_")]) == 0
    error_message = "The module sets what begins with SPOTWRIGHT_ itself; take other names for: ${join(", ", [for name in keys(var.environment) : name if startswith(name, "SPOTWRIGHT_")])}."
  }
}

variable "log_retention_days" {
  description = "How long what functions and parameter servers log is kept."
  type        = number
  default     = 14
  nullable    = false
}

variable "ami_id" {
  description = "Image of every parameter server; null: as the fleet's module chooses."
  type        = string
  default     = null
}

variable "ami_names" {
  description = "Names of Amazon's images to look for, with wildcards, when ami_id is null; null: as the fleet's module chooses."
  type        = list(string)
  default     = null
}

variable "root_volume_gib" {
  description = "Size of each parameter server's encrypted root volume."
  type        = number
  default     = 200
  nullable    = false
}

variable "allow_spot_parameter_servers" {
  description = "Whether parameter servers may be on the spot market."
  type        = bool
  default     = false
  nullable    = false
}

variable "vpc_id" {
  description = "VPC to run in; null: that of subnet_ids, else the region's default VPC."
  type        = string
  default     = null
}

variable "subnet_ids" {
  description = "Subnet by zone id; a zone left out: the one subnet that the VPC has there. Functions run in the subnets of their parameter servers."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "tags" {
  description = "More tags for everything. The module's own are Fleet, Pool, Role, Plan and CheckpointBucket."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "user_data" {
  description = "Script to run at a parameter server's first boot, by pool key or by role (ps). It is no place for secrets."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "agent" {
  description = "The agent on each parameter server, as in the fleet's module; null: no agent."
  type = object({
    daemon_address    = string
    ca_pem            = string
    job_id            = optional(string, "")
    package           = string
    certificate_store = optional(string, "ssm")
  })
  default = null
}

variable "create_checkpoint_bucket" {
  description = "Whether to make a bucket that functions and parameter servers may keep checkpoints in."
  type        = bool
  default     = false
  nullable    = false
}

variable "permissions_boundary_arn" {
  description = "Managed policy that bounds whatever the roles of functions and parameter servers may ever be given; null: none."
  type        = string
  default     = null
}

variable "metadata_hop_limit" {
  description = "How far from a parameter server's metadata service may be asked, as in the fleet's module."
  type        = number
  default     = 1
  nullable    = false
}
