#!/bin/sh
# Fail when the wire contract breaks callers of the last release; say so where there is none yet.
set -eu
cd "$(dirname "$0")/.."
release=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)
if [ -z "$release" ]; then
    echo "protos: no release tag yet, so there is nothing that a change could break"
    exit 0
fi
echo "protos: compared with $release"
exec "${BUF:-buf}" breaking --against ".git#tag=$release"
