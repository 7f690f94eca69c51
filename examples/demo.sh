#!/bin/sh
# What `make demo` shows: the cheapest fleet for an example job with its proof, what would help a job that
# cannot be done, what fleets written by hand would do, and a fleet rented by Terraform from a local AWS.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}

say() { printf '\n$ %s\n' "$*"; }

say "spotwright plan examples/resnet50.yaml"
"$bin/spotwright" plan examples/resnet50.yaml

say "spotwright plan examples/resnet50.yaml --deadline 5m"
"$bin/spotwright" plan examples/resnet50.yaml --deadline 5m || test $? -eq 3

say "spotwright compare examples/resnet50.yaml --fleet 'g4dn.12xlarge*4/spot' --fleet 'g5.12xlarge*3'"
"$bin/spotwright" compare examples/resnet50.yaml --fleet 'g4dn.12xlarge*4/spot' --fleet 'g5.12xlarge*3'

say "spotwright predict examples/papers/vgg19.yaml --fleet 'g4dn.4xlarge*4 + g3.16xlarge*4'"
"$bin/spotwright" predict examples/papers/vgg19.yaml --fleet 'g4dn.4xlarge*4 + g3.16xlarge*4'

"$bin/python" -m examples.rent_locally
