"""Agents that send telemetry, all in this one process: `python -m benchmarks.daemon.load --help`.

Each has a TLS channel and a certificate of its own, keeps what is not acknowledged, and sends it
again after a reconnect, as a real agent does. One JSON object on stdout tells what happened.
"""

import argparse
import asyncio
import json
import random
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from benchmarks.daemon.simulated_agent import LoadShape, SimulatedAgent
from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.certificate_files import open_authority

_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 300),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
_SEED = 7


class Load(NamedTuple):
    """What to do."""

    address: str
    tls_dir: Path | None  # None: plaintext
    agent_count: int
    duration_s: float
    ramp_s: float
    shape: LoadShape


def main() -> None:
    """Send, and print what happened."""
    raise_file_limit()
    load = _options()
    started_s = time.monotonic()
    agents = asyncio.run(_run(load))
    json.dump(_result(load, agents, time.monotonic() - started_s), sys.stdout)


def raise_file_limit() -> None:
    """Allow as many sockets as the system does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _run(load: Load) -> list[SimulatedAgent]:
    draw = random.Random(_SEED)
    channels = _channels(load)
    agents = [
        SimulatedAgent(_name(number), channel, load.shape, draw=random.Random(draw.random()))
        for number, channel in enumerate(channels)
    ]
    print(json.dumps({"ready": len(agents)}), file=sys.stderr, flush=True)
    end_s = time.monotonic() + load.ramp_s + load.duration_s
    running = [
        asyncio.create_task(agent.run(delay_s=load.ramp_s * number / len(agents), end_s=end_s))
        for number, agent in enumerate(agents)
    ]
    try:
        await asyncio.gather(*running)
    finally:
        await asyncio.gather(*(channel.close() for channel in channels))
    return agents


def _name(number: int) -> str:
    return f"agent-{number:05d}"


def _channels(load: Load) -> list[grpc.aio.Channel]:
    if load.tls_dir is None:
        return [
            grpc.aio.insecure_channel(load.address, options=_CHANNEL_OPTIONS)
            for _ in range(load.agent_count)
        ]
    authority, now = open_authority(load.tls_dir), datetime.now(UTC)
    trusted = (load.tls_dir / "ca.crt").read_bytes()
    channels = []
    for number in range(load.agent_count):
        request = CertificateRequest(kind=CertificateKind.AGENT, name=_name(number), days=1)
        pair = authority.issue(request, now=now)
        credentials = grpc.ssl_channel_credentials(trusted, pair.key, pair.certificate)
        channels.append(
            grpc.aio.secure_channel(load.address, credentials, options=_CHANNEL_OPTIONS)
        )
    return channels


def _result(load: Load, agents: list[SimulatedAgent], wall_s: float) -> dict[str, Any]:
    latencies_s = sorted(latency for agent in agents for latency in agent.ack_latencies_s)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    acked = sum(agent.acked for agent in agents)
    return {
        "agents": len(agents),
        "batches_sent": sum(agent.made for agent in agents),
        "batches_acked": acked,
        "rows_sent": acked * load.shape.rows_per_batch,
        "acks": sum(agent.ack_count for agent in agents),
        "ack_p50_s": _percentile(latencies_s, 0.50),
        "ack_p99_s": _percentile(latencies_s, 0.99),
        "ack_max_s": _percentile(latencies_s, 1.0),
        "sessions": sum(agent.session_count for agent in agents),
        "problems": _counted(problem for agent in agents for problem in agent.problems),
        "late_batches": sum(agent.late_count for agent in agents),
        "last_welcome_unix_s": max((agent.welcome_unix_s for agent in agents), default=0.0),
        "acked": {agent.agent_id: agent.acked for agent in agents},
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_mb": usage.ru_maxrss / 1024,
        "wall_s": wall_s,
    }


def _percentile(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def _counted(problems: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for problem in problems:
        counts[problem] = counts.get(problem, 0) + 1
    return counts


def _options() -> Load:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.daemon.load", description=__doc__)
    parser.add_argument("--address", required=True, help="HOST:PORT of the daemon")
    parser.add_argument("--tls-dir", type=Path, help="folder of the authority; absent: plaintext")
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--hz", type=float, default=1.0, help="samples a second")
    parser.add_argument("--batch-s", type=float, default=1.0, help="seconds between batches")
    parser.add_argument("--duration-s", type=float, default=10.0)
    parser.add_argument("--ramp-s", type=float, default=2.0, help="spread of the first connections")
    asked = parser.parse_args()
    return Load(
        address=asked.address,
        tls_dir=asked.tls_dir,
        agent_count=asked.agents,
        duration_s=asked.duration_s,
        ramp_s=asked.ramp_s,
        shape=LoadShape(gpus=asked.gpus, hz=asked.hz, batch_s=asked.batch_s),
    )


if __name__ == "__main__":
    main()
