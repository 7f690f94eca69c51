"""How soon a daemon serves again whose store holds a million samples."""

import signal
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.daemon.ingest_cases import against
from benchmarks.daemon.served import ServedDaemon
from benchmarks.daemon.simulated_agent import LoadShape, sample_batch
from benchmarks.table import print_table
from spotwright.adapters.grpc.telemetry.batch_reader import Sender, read_batch
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.telemetry import AgentFacts

_AGENTS, _SERVING_S = 100, 2.0
_SHAPE = LoadShape(gpus=8, hz=1.0, batch_s=1.0)


def print_restart(*, quick: bool) -> None:
    """Print the seconds from start to SERVING, each time after a kill."""
    rows, rounds = (20_000, 2) if quick else (1_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        daemon = ServedDaemon(Path(folder))
        _fill(daemon.store_url, rows)
        took_s = []
        for _ in range(rounds):
            took_s.append(daemon.start())
            daemon.end(signal.SIGKILL)
    lines = [
        ("median s", f"{statistics.median(took_s):.2f}", "-", "-"),
        ("worst s", f"{max(took_s):.2f}", *against(max(took_s), _SERVING_S)),
    ]
    what = f"Restart to SERVING with {rows:,} GPU samples stored, {rounds} times"
    print_table(what, ("figure", "found", "target", "verdict"), lines)


def _fill(store_url: str, rows: int) -> None:
    """Store that many samples, one batch of each agent a second until now."""
    rounds = rows // (_AGENTS * _SHAPE.gpus)
    senders = [Sender(f"gpu-{number}", "boot-1") for number in range(_AGENTS)]
    started_unix_ms = int((time.time() - rounds) * 1000)
    with closing(open_store(store_url)) as store:
        for sender in senders:
            facts = AgentFacts(agent_id=sender.agent_id, boot_id=sender.boot_id)
            store.open_session(facts, session_id=f"of {sender.agent_id}", replica="none")
        batch = sample_batch(_SHAPE)
        for number in range(rounds):
            now_ms = started_unix_ms + 1000 * number
            batch.sequence = number + 1
            batch.send_time_unix_ms = batch.samples[0].time_unix_ms = now_ms
            store.commit_batches(
                [read_batch(batch, sender=sender, receive_unix_ms=now_ms) for sender in senders]
            )
