#!/bin/sh
# Write the Python stubs of protos/ below daemon/; with --check, fail when the committed ones are stale.
set -eu
cd "$(dirname "$0")/.."
out=daemon
if [ "${1:-}" = --check ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out/spotwright/v1"
"${PYTHON:-python3}" -m grpc_tools.protoc -Iprotos --python_out="$out" --pyi_out="$out" \
    --grpc_python_out="$out" protos/spotwright/v1/*.proto
echo '"""The wire contract, generated from protos/ by `make proto`; never edited."""' \
    > "$out/spotwright/v1/__init__.py"
if [ "$out" != daemon ] && ! diff -r -x __pycache__ "$out/spotwright/v1" daemon/spotwright/v1; then
    echo "daemon/spotwright/v1 is stale: run 'make proto' and commit the result" >&2
    exit 1
fi
