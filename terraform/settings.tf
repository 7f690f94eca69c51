# What a user may choose beside the plan; everything here may be left out.

variable "ami_id" {
  description = "Image of every node; null: the newest of Amazon's images that is called as ami_names says, kept until it is changed here."
  type        = string
  default     = null
  validation {
    condition     = var.ami_id == null || can(regex("^ami-[0-9a-f]+$", var.ami_id))
    error_message = "ami_id must be the id of an image, such as ami-0123456789abcdef0, or null."
  }
}

variable "ami_names" {
  description = "Names of Amazon's images to look for, with wildcards, when ami_id is null; null: Deep Learning Base with NVIDIA's open driver for Ubuntu 24.04, or what emulators of AWS have. The agent needs Python 3.11."
  type        = list(string)
  default     = null
  validation {
    condition     = var.ami_names == null || try(length(var.ami_names) > 0, false)
    error_message = "ami_names needs at least one name; set ami_id to use one certain image."
  }
}

variable "root_volume_gib" {
  description = "Size of each node's encrypted root volume."
  type        = number
  default     = 200
  nullable    = false
  validation {
    condition     = var.root_volume_gib >= 8 && var.root_volume_gib <= 16384 && floor(var.root_volume_gib) == var.root_volume_gib
    error_message = "root_volume_gib must be a whole number from 8 to 16384."
  }
}

variable "vpc_id" {
  description = "VPC to run in; null: that of subnet_ids, else the region's default VPC."
  type        = string
  default     = null
}

variable "subnet_ids" {
  description = "Subnet by zone id, such as { use1-az4 = \"subnet-...\" }; a zone left out: the one subnet that the VPC has there, kept for the fleet."
  type        = map(string)
  default     = {}
  nullable    = false
}

locals {
  own_tags = ["Fleet", "Pool", "Role", "Plan", "CheckpointBucket"]
  # What IAM takes, which is the strictest of all that is tagged.
  tag_value = "^[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]{0,256}$"
}

variable "tags" {
  description = "More tags for everything. The module's own are Fleet, Pool, Role, Plan and CheckpointBucket."
  type        = map(string)
  default     = {}
  nullable    = false
  validation {
    # IAM takes Fleet and fleet for the same.
    condition     = length(setintersection([for key in keys(var.tags) : lower(key)], [for key in local.own_tags : lower(key)])) == 0
    error_message = "The module sets these tags itself; take other keys for: ${join(", ", [for key in keys(var.tags) : key if contains([for own in local.own_tags : lower(own)], lower(key))])}."
  }
  validation {
    # Nodes read their tags from the metadata service, and EC2 starts none whose keys do not fit there.
    condition = alltrue([
      for key in keys(var.tags) : can(regex("^[A-Za-z0-9+=._:@-]{1,128}$", key)) && !can(regex("(?i)^(aws:.*|[.]|[.][.]|_index)$", key))
    ])
    error_message = "A tag's key is 1 to 128 letters, digits and + - = . _ : @ here, because nodes read their tags from the metadata service; it does not begin with aws: and is not . or .. or _index. Wrong: ${join(", ", [
      for key in keys(var.tags) : key if !can(regex("^[A-Za-z0-9+=._:@-]{1,128}$", key)) || can(regex("(?i)^(aws:.*|[.]|[.][.]|_index)$", key))
    ])}."
  }
  validation {
    condition     = alltrue([for value in values(var.tags) : can(regex(local.tag_value, value))])
    error_message = "A tag's value is at most 256 letters, digits, spaces and _ . : / = + - @ here, because IAM takes nothing else. Wrong: ${join(", ", [for key, value in var.tags : key if !can(regex(local.tag_value, value))])}."
  }
}

variable "user_data" {
  description = "Script to run at a node's first boot, by pool key or by role (worker, ps); a pool's own goes before its role's. It is no place for secrets: whoever may describe an instance can read it."
  type        = map(string)
  default     = {}
  nullable    = false
  validation {
    condition     = length(setsubtract(keys(var.user_data), concat(["worker", "ps"], keys(var.pools)))) == 0
    error_message = "A key of user_data is worker, ps or the key of a pool. Wrong: ${join(", ", setsubtract(keys(var.user_data), concat(["worker", "ps"], keys(var.pools))))}."
  }
  validation {
    condition     = alltrue([for script in var.user_data : startswith(script, "#!")])
    error_message = "A script of user_data starts with #! and its interpreter, such as #!/bin/sh. Wrong: ${join(", ", [for key, script in var.user_data : key if !startswith(script, "#!")])}."
  }
}

variable "agent" {
  description = "The agent on each node: HOST:PORT of the daemon, the authority's certificate (ca.crt, no secret), the job, what pip installs as root (name a version), and where `spotwright certs publish` puts certificates (ssm or secretsmanager). null: no agent."
  type = object({
    daemon_address    = string
    ca_pem            = string
    job_id            = optional(string, "")
    package           = string
    certificate_store = optional(string, "ssm")
  })
  default = null
  validation {
    condition     = var.agent == null || can(regex("^[^\\s:]+:[0-9]+$|^\\[[0-9a-f:]+\\]:[0-9]+$", var.agent.daemon_address))
    error_message = "agent.daemon_address must be HOST:PORT, such as gpu-head.internal:7443."
  }
  validation {
    condition     = var.agent == null || try(strcontains(var.agent.ca_pem, "BEGIN CERTIFICATE") && !strcontains(var.agent.ca_pem, "PRIVATE KEY"), false)
    error_message = "agent.ca_pem must be the text of ca.crt: a certificate, and never a private key."
  }
  validation {
    condition     = var.agent == null || try(trimspace(var.agent.package) != "", false)
    error_message = "agent.package must be what pip installs, such as spotwright==0.1.0."
  }
  validation {
    condition     = var.agent == null || try(contains(["ssm", "secretsmanager"], var.agent.certificate_store), false)
    error_message = "agent.certificate_store must be ssm or secretsmanager."
  }
}

variable "capacity_rebalance" {
  description = "Whether a spot node at risk is replaced before AWS takes it away; for a while the pool then has more nodes than planned."
  type        = bool
  default     = false
  nullable    = false
}

variable "cluster_placement_group" {
  description = "Whether the workers of a zone are placed close together: faster between nodes, and harder to get."
  type        = bool
  default     = false
  nullable    = false
}

variable "allow_spot_parameter_servers" {
  description = "Whether a pool of parameter servers may be on the spot market."
  type        = bool
  default     = false
  nullable    = false
}

variable "log_retention_days" {
  description = "How long a log group for the nodes keeps what they write; null: no log group."
  type        = number
  default     = null
}

variable "create_checkpoint_bucket" {
  description = "Whether to make a bucket that the nodes may keep checkpoints in."
  type        = bool
  default     = false
  nullable    = false
}

variable "permissions_boundary_arn" {
  description = "Managed policy that bounds whatever the nodes' role may ever be given; null: none."
  type        = string
  default     = null
  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:[a-z-]+:iam::(aws|[0-9]{12}):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of a managed policy, such as arn:aws:iam::123456789012:policy/boundary, or null."
  }
}

variable "metadata_hop_limit" {
  description = "How far from a node's metadata service may be asked: 1: by processes of the node itself, 2: also by containers with a network of their own, which then have the node's role and its certificate."
  type        = number
  default     = 1
  nullable    = false
  validation {
    condition     = contains(range(1, 65), var.metadata_hop_limit)
    error_message = "metadata_hop_limit must be a whole number from 1 to 64."
  }
}
