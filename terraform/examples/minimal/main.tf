# A fleet as `spotwright plan` wants it. This file is yours to edit: Spotwright writes only
# fleet.auto.tfvars.json, whose values come in through variables.tf.

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

  # An agent on each node that reports to your daemon. `spotwright certs init` writes ca.crt, and
  # `spotwright certs publish` gives each node its own certificate.
  # agent = {
  #   daemon_address = "gpu-head.internal:7443"
  #   ca_pem         = file("${path.module}/ca.crt")
  #   package        = "spotwright==0.1.0" # what pip installs as root: always a certain version
  # }

  # A script for the first boot of each worker. It must hold no secrets.
  # user_data = { worker = file("${path.module}/start-training.sh") }

  # Subnets of your own by zone id; left out: those of the default VPC.
  # subnet_ids = { use1-az4 = "subnet-0123456789abcdef0" }

  # An image of your own; left out: Amazon's newest Deep Learning Base image for Ubuntu 24.04.
  # ami_id = "ami-0123456789abcdef0"

  # tags                     = { Team = "vision" }
  # create_checkpoint_bucket = true
  # log_retention_days       = 14
  # cluster_placement_group  = true
}
