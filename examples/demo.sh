#!/bin/sh
# What `make demo` shows: the example job, checked, and the offers it may choose from.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}
show() { printf '\n$ %s\n' "$*"; "$bin/$@"; }
show spotwright catalog show g4dn.12xlarge
show spotwright catalog list --job examples/resnet50.yaml | head -20
