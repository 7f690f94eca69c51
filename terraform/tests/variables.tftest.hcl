# Every validation of the generated variables: what a hand or a newer Spotwright may have put in the file.

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

run "a_newer_schema_is_refused" {
  command = plan
  variables {
    schema_version = 2
  }
  expect_failures = [var.schema_version]
}

run "an_upper_case_fleet_name_is_refused" {
  command = plan
  variables {
    fleet_name = "ResNet"
  }
  expect_failures = [var.fleet_name]
}

run "a_fleet_name_that_ends_in_a_hyphen_is_refused" {
  command = plan
  variables {
    fleet_name = "resnet-"
  }
  expect_failures = [var.fleet_name]
}

run "a_blank_plan_id_is_refused" {
  command = plan
  variables {
    plan_id = " "
  }
  expect_failures = [var.plan_id]
}

run "a_zone_for_a_region_is_refused" {
  command = plan
  variables {
    region = "us-east-1a"
  }
  expect_failures = [var.region]
}

run "a_negative_cost_is_refused" {
  command = plan
  variables {
    cost_usd_low = -1
  }
  expect_failures = [var.cost_usd_low]
}

run "a_cost_range_upside_down_is_refused" {
  command = plan
  variables {
    cost_usd_high = 30
  }
  expect_failures = [var.cost_usd_high]
}

run "a_fleet_of_no_pools_is_refused" {
  command = plan
  variables {
    pools = {}
  }
  expect_failures = [var.pools]
}

run "a_key_that_is_not_role_type_zone_market_is_refused" {
  command = plan
  variables {
    pools = {
      workers = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "an_unknown_role_is_refused" {
  command = plan
  variables {
    pools = {
      boss-g5-xlarge-use1-az4-spot = {
        role       = "boss", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "an_unknown_market_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spott = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spott",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_count_of_minus_one_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = -1, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_count_of_none_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 0, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "half_a_node_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 1.5, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_type_without_a_size_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-use1-az4-spot = {
        role       = "worker", instance_type = "g5", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_zone_of_another_region_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-usw2-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "usw2-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_zone_name_for_a_zone_id_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-us-east-1a-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "us-east-1a", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_price_ceiling_of_nothing_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_price_ceiling_with_an_exponent_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "5e-1", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_price_ceiling_with_a_sign_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "-0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "thirty_three_efa_interfaces_are_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 33
      }
    }
  }
  expect_failures = [var.pools]
}

run "half_an_efa_interface_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0.5
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_spot_parameter_server_is_refused" {
  command = plan
  variables {
    pools = {
      ps-g5-xlarge-use1-az4-spot = {
        role       = "ps", instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "a_fleet_name_of_64_letters_is_refused" {
  command = plan
  variables {
    fleet_name = join("", [for i in range(64) : "f"])
  }
  expect_failures = [var.fleet_name]
}

run "a_plan_id_of_257_characters_is_refused" {
  command = plan
  variables {
    plan_id = join("", [for i in range(257) : "p"])
  }
  expect_failures = [var.plan_id]
}

run "a_plan_id_that_looks_like_code_is_refused" {
  command = plan
  variables {
    plan_id = "$${path.root}"
  }
  expect_failures = [var.plan_id]
}

run "a_pool_without_a_role_is_refused" {
  command = plan
  variables {
    pools = {
      worker-g5-xlarge-use1-az4-spot = {
        role       = null, instance_type = "g5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  expect_failures = [var.pools]
}

run "zone_ids_of_eu_central_1_are_known" {
  command = plan
  variables {
    region = "eu-central-1"
    pools = {
      worker-g5-xlarge-euc1-az2-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "euc1-az2", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  override_data {
    target = data.aws_region.this
    values = { id = "eu-central-1" }
  }
  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { instance_types = ["g5.xlarge"], locations = ["euc1-az2"] }
  }
  assert {
    condition     = keys(aws_autoscaling_group.this) == ["worker-g5-xlarge-euc1-az2-spot"]
    error_message = "The zone is one of eu-central-1."
  }
}

run "zone_ids_of_ap_southeast_2_are_known" {
  command = plan
  variables {
    region = "ap-southeast-2"
    pools = {
      worker-g5-xlarge-apse2-az1-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "apse2-az1", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  override_data {
    target = data.aws_region.this
    values = { id = "ap-southeast-2" }
  }
  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { instance_types = ["g5.xlarge"], locations = ["apse2-az1"] }
  }
  assert {
    condition     = keys(aws_autoscaling_group.this) == ["worker-g5-xlarge-apse2-az1-spot"]
    error_message = "The zone is one of ap-southeast-2."
  }
}

run "zone_ids_of_us_gov_west_1_are_known" {
  command = plan
  variables {
    region = "us-gov-west-1"
    pools = {
      worker-g5-xlarge-usgw1-az3-spot = {
        role       = "worker", instance_type = "g5.xlarge", zone_id = "usgw1-az3", market = "spot",
        node_count = 6, max_price_usd_per_hour = "0.52", efa_interfaces = 0
      }
    }
  }
  override_data {
    target = data.aws_region.this
    values = { id = "us-gov-west-1" }
  }
  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { instance_types = ["g5.xlarge"], locations = ["usgw1-az3"] }
  }
  assert {
    condition     = keys(aws_autoscaling_group.this) == ["worker-g5-xlarge-usgw1-az3-spot"]
    error_message = "The zone is one of us-gov-west-1."
  }
}
