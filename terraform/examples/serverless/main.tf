# Functions and their parameter servers as `spotwright plan` wants them. This file is yours to edit: Spotwright
# writes only fleet.auto.tfvars.json, whose values come in through variables.tf. What the functions run is not
# part of a plan: name its image in a file terraform.tfvars,
#   image_uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training:v1"

provider "aws" {
  region = var.region
}

module "fleet" {
  source = "../../modules/serverless"

  schema_version = var.schema_version
  fleet_name     = var.fleet_name
  plan_id        = var.plan_id
  region         = var.region
  cost_usd_low   = var.cost_usd_low
  cost_usd_high  = var.cost_usd_high
  pools          = var.pools
  functions      = var.functions

  # What the functions run. A package in a bucket can take the place of the image; then drop image_uri, here and
  # in variables.tf.
  image_uri = var.image_uri
  # package = { s3_bucket = "our-code", s3_key = "train.zip", handler = "train.handler", runtime = "python3.12" }

  # More settings of the functions. Environment variables must hold no secrets.
  # environment = { DATASET = "s3://our-data/cifar10" }
  # timeout_s   = 600

  # An agent on each parameter server that reports to your daemon. `spotwright certs init` writes ca.crt, and
  # `spotwright certs publish` gives each node its own certificate.
  # agent = {
  #   daemon_address = "gpu-head.internal:7443"
  #   ca_pem         = file("${path.module}/ca.crt")
  #   package        = "spotwright==0.1.0" # what pip installs as root: always a certain version
  # }

  # A script for the first boot of each parameter server. It must hold no secrets.
  # user_data = { ps = file("${path.module}/start-parameter-server.sh") }

  # Subnets of your own by zone id; left out: those of the default VPC.
  # subnet_ids = { use1-az4 = "subnet-0123456789abcdef0" }

  # An image of your own; left out: Amazon's newest Deep Learning Base image for Ubuntu 24.04.
  # ami_id = "ami-0123456789abcdef0"

  # tags                     = { Team = "vision" }
  # create_checkpoint_bucket = true
  # log_retention_days       = 90
}
