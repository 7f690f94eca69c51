# What a fleet is made of, pool by pool, and what AWS must have for it. Workers, parameter servers,
# network, access and storage are in files of their own.

locals {
  workers           = { for key, p in var.pools : key => p if p.role == "worker" }
  parameter_servers = { for key, p in var.pools : key => p if p.role == "ps" }
  instance_types    = toset([for p in var.pools : p.instance_type])

  fleet_tags = merge(var.tags, { Fleet = var.fleet_name })
  # Plan is no part of these: it is new at each replan, and would make each launch template new with it.
  pool_tags = { for key, p in var.pools : key => merge(local.fleet_tags, { Pool = key, Role = p.role }) }
  # What a node can read of itself, from the metadata service.
  node_tags = { for key, tags in local.pool_tags : key => merge(
    tags, { Plan = var.plan_id }, var.create_checkpoint_bucket ? { CheckpointBucket = aws_s3_bucket.this[0].bucket } : {}
  ) }
}

data "aws_region" "this" {
  lifecycle {
    postcondition {
      # The attribute name is deprecated from version 6 of the provider on; id is the same.
      condition     = self.id == var.region
      error_message = "The plan rents in ${var.region} and the AWS provider is set to ${self.id}: set its region to var.region."
    }
  }
}

data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

data "aws_ec2_instance_type_offerings" "this" {
  location_type = "availability-zone-id"
  filter {
    name   = "instance-type"
    values = local.instance_types
  }
}

# Only of what the region has, so that a type that is not there is told with its pool and not by the provider.
data "aws_ec2_instance_type" "this" {
  for_each      = setintersection(local.instance_types, data.aws_ec2_instance_type_offerings.this.instance_types)
  instance_type = each.key
}

# A look-up that may find nothing: what Amazon withdraws must not keep a fleet that runs from being changed
# or ended.
data "aws_ami_ids" "found" {
  count  = var.ami_id == null ? 1 : 0
  owners = ["amazon"]
  filter {
    name   = "name"
    values = local.ami_names
  }
}

locals {
  ami_names = coalesce(var.ami_names, ["Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *", "Deep Learning AMI Ubuntu Linux - *"])
  # The newest comes first. Nothing found is empty and not null, which no message can hold.
  ami_id = var.ami_id != null ? var.ami_id : try(data.aws_ami_ids.found[0].ids[0], "")
}

data "aws_ami" "this" {
  count              = local.ami_id == "" ? 0 : 1
  include_deprecated = true # Amazon deprecates an image long before it withdraws it
  filter {
    name   = "image-id"
    values = [local.ami_id]
  }
}

# A fleet keeps the image it began with: a newer one that the look-up finds must not replace nodes that
# run, nor be mixed with them. What is judged is what is kept, so it is read by its input: the output of
# one that is made anew is not known before apply, and everything would seem to change.
resource "terraform_data" "image" {
  input = {
    id               = local.ami_id
    architecture     = join("", data.aws_ami.this[*].architecture)
    creation_date    = join("", data.aws_ami.this[*].creation_date)
    root_device_name = join("", data.aws_ami.this[*].root_device_name)
    root_volume_gib = max(0, flatten([
      for image in data.aws_ami.this : [
        for m in image.block_device_mappings : try(tonumber(m.ebs["volume_size"]), 0) if m.device_name == image.root_device_name
      ]
    ])...)
  }
  triggers_replace = var.ami_id == null ? local.ami_names : [var.ami_id]
  lifecycle {
    ignore_changes = [input]
    postcondition {
      condition     = self.input.id != ""
      error_message = "Amazon has no image in ${var.region} that is called ${join(" or ", local.ami_names)}: set ami_id or ami_names."
    }
    postcondition {
      condition     = self.input.root_volume_gib <= var.root_volume_gib
      error_message = "root_volume_gib is ${var.root_volume_gib}, and the image ${self.input.id} needs ${self.input.root_volume_gib}."
    }
  }
}

locals {
  image = terraform_data.image.input
  types = data.aws_ec2_instance_type.this
  offered = toset([
    for i, type in data.aws_ec2_instance_type_offerings.this.instance_types :
    "${type} in ${data.aws_ec2_instance_type_offerings.this.locations[i]}"
  ])
}

# What makes a node of a pool what it is. Nodes are never changed: when this changes, they are replaced.
# A count, a price ceiling and a tag are no part of it.
resource "terraform_data" "shape" {
  for_each = var.pools
  input = {
    image_id        = local.image.id
    instance_type   = each.value.instance_type
    market          = each.value.market
    subnet_id       = local.subnet_ids[each.value.zone_id]
    efa_interfaces  = each.value.role == "worker" ? each.value.efa_interfaces : 0
    root_volume_gib = var.root_volume_gib
    placed_together = var.cluster_placement_group && each.value.role == "worker"
    user_data       = sha256(local.user_data[each.key])
  }
  lifecycle {
    precondition {
      condition = local.subnet_ids[each.value.zone_id] != null
      error_message = "Pool ${each.key} needs a subnet in ${each.value.zone_id}, and VPC ${local.vpc_id} has ${
        length(local.found_subnet_ids[each.value.zone_id]) == 0 ? "none: make one, or name one in subnet_ids" :
        "several, ${join(", ", local.found_subnet_ids[each.value.zone_id])}: name one of them in subnet_ids"
      }."
    }
    precondition {
      condition     = contains(local.offered, "${each.value.instance_type} in ${each.value.zone_id}")
      error_message = "Pool ${each.key}: AWS does not offer ${each.value.instance_type} in ${each.value.zone_id}; refresh the catalog and plan again."
    }
    precondition {
      condition     = try(contains(local.types[each.value.instance_type].supported_architectures, local.image.architecture), true)
      error_message = "Pool ${each.key}: the image ${local.image.id} is for ${local.image.architecture}, which ${each.value.instance_type} is not; set ami_id or ami_names."
    }
    precondition {
      # The open driver knows Turing and what came after it.
      condition     = var.ami_id != null || var.ami_names != null || !can(regex("^(p2|p3|p3dn|g3|g3s)[.]", each.value.instance_type))
      error_message = "Pool ${each.key}: the usual image has NVIDIA's open driver, which cannot drive the GPUs of ${each.value.instance_type}; set ami_id or ami_names to an image with the proprietary driver."
    }
    precondition {
      # A type without EFA has null here; one that is not offered at all was told of above.
      condition = (
        each.value.role == "ps" || !contains(keys(local.types), each.value.instance_type) ||
        try(coalesce(local.types[each.value.instance_type].efa_maximum_interfaces, 0), 0) >= each.value.efa_interfaces
      )
      error_message = "Pool ${each.key} wants ${each.value.efa_interfaces} EFA interfaces, and ${each.value.instance_type} has fewer."
    }
    precondition {
      condition = (
        each.value.role == "ps" || !var.cluster_placement_group || !contains(keys(local.types), each.value.instance_type) ||
        try(contains(local.types[each.value.instance_type].supported_placement_strategies, "cluster"), false)
      )
      error_message = "Pool ${each.key}: ${each.value.instance_type} cannot be placed close together; leave cluster_placement_group out, or plan with other types."
    }
    precondition {
      condition     = local.user_data_bytes[each.key] <= 16384
      error_message = "Pool ${each.key}: user data is ${local.user_data_bytes[each.key]} bytes when compressed, and EC2 takes 16384; let the script fetch what is long."
    }
  }
}

# Only a warning: close together is harder to get, and somebody may want the nodes all the same.
check "placement" {
  assert {
    condition     = var.cluster_placement_group || alltrue([for p in local.workers : p.efa_interfaces == 0 || p.node_count == 1])
    error_message = "EFA is at its best between nodes that are close together; set cluster_placement_group for: ${join(", ", [for key, p in local.workers : key if p.efa_interfaces > 0 && p.node_count > 1])}."
  }
}

# Only a warning, since an image of one's own may be as old. The second of the usual names is that of an image that
# emulators of AWS have, and there it is new; whoever gets it from AWS itself must know.
check "image" {
  assert {
    condition     = try(timecmp(local.image.creation_date, "2024-01-01T00:00:00Z") >= 0, true)
    error_message = "The image ${local.image.id} is of ${substr(local.image.creation_date, 0, 10)}, too old to run the agent or to drive newer GPUs: set ami_id or ami_names."
  }
}
