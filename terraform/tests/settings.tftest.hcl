# Every validation of a setting, and every precondition: what only AWS can say about a fleet.

mock_provider "aws" {
  source = "./tests/aws"
}

variables {
  schema_version = 1
  fleet_name     = "resnet50"
  plan_id        = "p-1"
  region         = "us-east-1"
  cost_usd_low   = 31
  cost_usd_high  = 38.5
  pools = {
    worker-g5-xlarge-use1-az4-spot = {
      role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
      node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
    }
  }
}

run "an_image_by_name_is_refused" {
  command = plan
  variables {
    ami_id = "ubuntu"
  }
  expect_failures = [var.ami_id]
}

run "no_image_names_are_refused" {
  command = plan
  variables {
    ami_names = []
  }
  expect_failures = [var.ami_names]
}

run "a_root_volume_of_four_gib_is_refused" {
  command = plan
  variables {
    root_volume_gib = 4
  }
  expect_failures = [var.root_volume_gib]
}

run "a_boundary_by_name_is_refused" {
  command = plan
  variables {
    permissions_boundary_arn = "boundary"
  }
  expect_failures = [var.permissions_boundary_arn]
}

run "metadata_that_nobody_may_ask_for_is_refused" {
  command = plan
  variables {
    metadata_hop_limit = 0
  }
  expect_failures = [var.metadata_hop_limit]
}

run "a_tag_of_the_modules_own_is_refused" {
  command = plan
  variables {
    tags = { Plan = "mine" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_that_metadata_cannot_hold_is_refused" {
  command = plan
  variables {
    tags = { "cost centre" = "7" }
  }
  expect_failures = [var.tags]
}

run "user_data_for_a_pool_that_is_not_there_is_refused" {
  command = plan
  variables {
    user_data = { wroker = "#!/bin/sh" }
  }
  expect_failures = [var.user_data]
}

run "user_data_that_is_no_script_is_refused" {
  command = plan
  variables {
    user_data = { worker = "echo hello" }
  }
  expect_failures = [var.user_data]
}

run "a_daemon_without_a_port_is_refused" {
  command = plan
  variables {
    agent = { daemon_address = "gpu-head", ca_pem = "-----BEGIN CERTIFICATE-----", package = "spotwright==0.1.0", certificate_store = "ssm" }
  }
  expect_failures = [var.agent]
}

run "a_private_key_in_the_place_of_a_certificate_is_refused" {
  command = plan
  variables {
    agent = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----", package = "spotwright==0.1.0", certificate_store = "ssm" }
  }
  expect_failures = [var.agent]
}

run "an_unknown_certificate_store_is_refused" {
  command = plan
  variables {
    agent = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE-----", package = "spotwright==0.1.0", certificate_store = "s3" }
  }
  expect_failures = [var.agent]
}

run "a_provider_set_to_another_region_is_refused" {
  command = plan
  override_data {
    target = data.aws_region.this
    values = { id = "eu-west-1" }
  }
  expect_failures = [data.aws_region.this]
}

run "a_zone_without_a_subnet_is_refused" {
  command = plan
  override_data {
    target = data.aws_subnets.found
    values = { ids = [] }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "a_type_that_the_zone_does_not_offer_is_refused" {
  command = plan
  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { instance_types = ["g5.xlarge"], locations = ["use1-az6"] }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "an_image_for_another_architecture_is_refused" {
  command = plan
  override_data {
    target = data.aws_ec2_instance_type.this
    values = { supported_architectures = ["arm64"], efa_maximum_interfaces = 0 }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "more_efa_interfaces_than_the_type_has_are_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 1, max_price_usd_per_hour = "0.52", efa_interfaces = 1
      }
    }
  }
  override_data {
    target = data.aws_ec2_instance_type.this
    values = { supported_architectures = ["x86_64"], efa_maximum_interfaces = null }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "seventeen_kilobytes_of_user_data_that_cannot_be_compressed_are_refused" {
  command = plan
  variables {
    user_data = { worker = "#!/bin/sh\n${join("", [for i in range(196) : base64sha512(tostring(i))])}" }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "user_data_just_below_the_limit_is_taken" {
  command = plan
  variables {
    user_data = { worker = "#!/bin/sh\n${join("", [for i in range(192) : base64sha512(tostring(i))])}" }
  }
  assert {
    condition     = local.user_data_bytes["worker-g5-xlarge-use1-az4-spot"] > 16200
    error_message = "What counts is the size that EC2 sees, and 16384 bytes of it are taken."
  }
}

run "a_root_volume_smaller_than_the_image_is_refused" {
  command = plan
  variables {
    root_volume_gib = 74
  }
  expect_failures = [terraform_data.image]
}

run "a_subnet_in_another_zone_than_said_is_refused" {
  command = plan
  variables {
    subnet_ids = { use1-az6 = "subnet-own" }
  }
  expect_failures = [data.aws_subnet.named["use1-az6"]]
}

run "a_subnet_in_another_vpc_is_refused" {
  command = plan
  variables {
    vpc_id     = "vpc-other"
    subnet_ids = { use1-az4 = "subnet-own" }
  }
  expect_failures = [aws_security_group.this]
}

run "efa_nodes_that_are_not_close_together_are_warned_of" {
  command = plan
  variables {
    pools = {
      worker-p4d-24xlarge-use1-az4-on-demand = {
        role       = "worker", instance_type = "p4d.24xlarge", zone_id = "use1-az4", market = "on-demand",
        node_count = 2, max_price_usd_per_hour = "33", efa_interfaces = 4
      }
    }
  }
  expect_failures = [check.placement]
}

run "a_tag_of_the_modules_own_in_other_letters_is_refused" {
  command = plan
  variables {
    tags = { fleet = "mine" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_with_a_slash_is_refused" {
  command = plan
  variables {
    tags = { "cost/centre" = "7" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_with_a_comma_is_refused" {
  command = plan
  variables {
    tags = { "a,b" = "7" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_of_amazons_own_is_refused" {
  command = plan
  variables {
    tags = { "AWS:x" = "7" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_that_metadata_has_itself_is_refused" {
  command = plan
  variables {
    tags = { _index = "7" }
  }
  expect_failures = [var.tags]
}

run "a_tag_key_of_129_characters_is_refused" {
  command = plan
  variables {
    tags = { "${join("", [for i in range(129) : "k"])}" = "7" }
  }
  expect_failures = [var.tags]
}

run "a_tag_value_with_a_quote_is_refused" {
  command = plan
  variables {
    tags = { Team = "a\"b" }
  }
  expect_failures = [var.tags]
}

run "a_tag_value_that_looks_like_code_is_refused" {
  command = plan
  variables {
    tags = { Team = "$${c}" }
  }
  expect_failures = [var.tags]
}

run "a_tag_value_of_257_characters_is_refused" {
  command = plan
  variables {
    tags = { Team = join("", [for i in range(257) : "v"]) }
  }
  expect_failures = [var.tags]
}

run "a_root_volume_beyond_what_ebs_has_is_refused" {
  command = plan
  variables {
    root_volume_gib = 16385
  }
  expect_failures = [var.root_volume_gib]
}

run "half_a_gibibyte_of_root_volume_is_refused" {
  command = plan
  variables {
    root_volume_gib = 200.5
  }
  expect_failures = [var.root_volume_gib]
}

run "an_authority_without_a_certificate_is_refused" {
  command = plan
  variables {
    agent = { daemon_address = "gpu-head:7443", ca_pem = "MII", package = "spotwright==0.1.0" }
  }
  expect_failures = [var.agent]
}

run "an_agent_of_no_package_is_refused" {
  command = plan
  variables {
    agent = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE-----", package = " " }
  }
  expect_failures = [var.agent]
}

run "several_subnets_in_a_zone_of_ones_own_vpc_are_refused" {
  command = plan
  variables {
    vpc_id = "vpc-own"
  }
  override_data {
    target = data.aws_subnets.found
    values = { ids = ["subnet-b", "subnet-a"] }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}

run "an_image_that_nobody_has_is_refused" {
  command = plan
  override_data {
    target = data.aws_ami_ids.found
    values = { ids = [] }
  }
  expect_failures = [terraform_data.image]
}

run "an_old_image_is_warned_of" {
  command = plan
  override_data {
    target = data.aws_ami.this
    values = { architecture = "x86_64", creation_date = "2017-10-16T00:00:00.000Z", root_device_name = "/dev/sda1", block_device_mappings = [] }
  }
  expect_failures = [check.image]
}

run "gpus_that_the_open_driver_does_not_know_need_an_image_of_their_own" {
  command = plan
  variables {
    pools = {
      worker-p3-2xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "p3.2xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 1, max_price_usd_per_hour = "3.06", efa_interfaces = 0
      }
    }
  }
  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { instance_types = ["p3.2xlarge"], locations = ["use1-az4"] }
  }
  expect_failures = [terraform_data.shape["worker-p3-2xlarge-use1-az4-spot"]]
}

run "a_type_that_cannot_be_placed_close_together_is_refused" {
  command = plan
  variables {
    cluster_placement_group = true
  }
  override_data {
    target = data.aws_ec2_instance_type.this
    values = { supported_architectures = ["x86_64"], efa_maximum_interfaces = 0, supported_placement_strategies = ["partition", "spread"] }
  }
  expect_failures = [terraform_data.shape["worker-g5-xlarge-use1-az4-spot"]]
}
