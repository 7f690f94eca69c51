#!/bin/sh
# Report steps from anything that can run a command; needs socat.
socket=${SPOTWRIGHT_AGENT_SOCKET:-/run/spotwright-agent/training.sock}
for step in 1 2 3; do
    sleep 1
    printf '{"step":%d,"step_s":1.0}\n' "$step" | socat -u - "UNIX-SENDTO:$socket"
done
