"""What Spotwright adds to Terraform, and how long fleets of several sizes take."""
