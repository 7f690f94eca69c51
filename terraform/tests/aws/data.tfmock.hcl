# What AWS says in these tests. Types and zones that are not here are not offered.

mock_data "aws_region" {
  defaults = { id = "us-east-1" }
}

mock_data "aws_partition" {
  defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
}

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_vpc" {
  defaults = { id = "vpc-default" }
}

mock_data "aws_subnets" {
  defaults = { ids = ["subnet-a"] }
}

mock_data "aws_subnet" {
  defaults = { id = "subnet-own", vpc_id = "vpc-own", availability_zone_id = "use1-az4" }
}

mock_data "aws_ami_ids" {
  defaults = { ids = ["ami-0123456789abcdef0", "ami-older"] }
}

mock_data "aws_ami" {
  defaults = {
    id               = "ami-0123456789abcdef0"
    architecture     = "x86_64"
    creation_date    = "2025-06-01T00:00:00.000Z"
    root_device_name = "/dev/sda1"
    block_device_mappings = [
      { device_name = "/dev/sda1", ebs = { volume_size = "75" }, no_device = "", virtual_name = "" },
      { device_name = "/dev/sdb", ebs = {}, no_device = "", virtual_name = "ephemeral0" },
    ]
  }
}

mock_data "aws_ec2_instance_type" {
  defaults = { supported_architectures = ["i386", "x86_64"], efa_maximum_interfaces = 32, supported_placement_strategies = ["cluster", "partition", "spread"] }
}

mock_data "aws_ec2_instance_type_offerings" {
  defaults = {
    instance_types = ["g5.xlarge", "g5.xlarge", "g4dn.xlarge", "m5.xlarge", "p4d.24xlarge", "p5.48xlarge"]
    locations      = ["use1-az4", "use1-az6", "use1-az4", "use1-az4", "use1-az4", "use1-az6"]
  }
}

mock_resource "aws_launch_template" {
  defaults = { id = "lt-0123456789abcdef0" }
}

mock_resource "aws_s3_bucket" {
  defaults = { arn = "arn:aws:s3:::spotwright-llm-1", bucket = "spotwright-llm-1" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:us-east-1:123456789012:log-group:/spotwright/llm" }
}
