# Every setting in use: p5 nodes with EFA close together and a parameter server, in subnets of your own,
# with the agent on every node, a bucket for checkpoints and a log group.

provider "aws" {
  region = var.region
}

module "fleet" {
  source = "../.."

  schema_version = var.schema_version
  fleet_name     = var.fleet_name
  plan_id        = var.plan_id
  region         = var.region
  cost_usd_low   = var.cost_usd_low
  cost_usd_high  = var.cost_usd_high
  pools          = var.pools

  ami_names       = ["Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *"]
  root_volume_gib = 500
  subnet_ids      = var.subnet_ids
  tags            = { Team = "vision", CostCentre = "1234" }

  agent = {
    daemon_address    = var.daemon_address
    ca_pem            = file(var.ca_file)
    job_id            = var.fleet_name
    package           = "spotwright==0.1.0"
    certificate_store = "secretsmanager"
  }
  user_data = {
    worker = file("${path.module}/first-boot.sh")
  }

  capacity_rebalance           = true
  cluster_placement_group      = true
  allow_spot_parameter_servers = false
  create_checkpoint_bucket     = true
  log_retention_days           = 14
  permissions_boundary_arn     = var.permissions_boundary_arn
  metadata_hop_limit           = 2 # training runs in containers, and reads the bucket's name from the node's tags
}
