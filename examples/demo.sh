#!/bin/sh
# What `make demo` shows: an example job, the offers it may choose from, and what one fleet would do with it.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}

say() { printf '\n$ %s\n' "$*"; }

say "spotwright catalog list --job examples/resnet50.yaml | head"
"$bin/spotwright" catalog list --job examples/resnet50.yaml | head

say "spotwright predict examples/resnet50.yaml --fleet 'g4dn.12xlarge*4/spot'"
"$bin/spotwright" predict examples/resnet50.yaml --fleet 'g4dn.12xlarge*4/spot'

say "spotwright predict examples/papers/vgg19.yaml --fleet 'g4dn.4xlarge*4 + g3.16xlarge*4'"
"$bin/spotwright" predict examples/papers/vgg19.yaml --fleet 'g4dn.4xlarge*4 + g3.16xlarge*4'
