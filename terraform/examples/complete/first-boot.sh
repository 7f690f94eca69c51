#!/bin/sh
# The local disks of a p5 node as one, for the training data.
set -eu
disks=$(lsblk --nodeps --noheadings --output PATH,MODEL | awk '/Instance Storage/ { print $1 }')
test -n "$disks" || exit 0
# shellcheck disable=SC2086
mdadm --create /dev/md0 --level=0 --raid-devices="$(echo "$disks" | wc -l)" $disks
mkfs.xfs /dev/md0
mkdir -p /data
mount /dev/md0 /data
