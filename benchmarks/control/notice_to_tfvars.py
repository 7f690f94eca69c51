"""From a cloud's notice to new Terraform variables on disk: `python -m ... [--count 50]`.

A fake metadata service says that a host goes, a real agent sees it, a real daemon decides and
writes. All on loopback; each time a new job and a new agent.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from spotwright.client import Client
from spotwright.domain.job_run import Steer
from spotwright.domain.questions import PlannedFleet
from tests.cli.small_job import small_job
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.steered_job import event_of, one_host, planned_job, started_job, until

TARGET_S = 5.0


def notice_to_tfvars(count: int = 50) -> list[tuple[str, str]]:
    """Return the figures as rows of a table."""
    with tempfile.TemporaryDirectory(prefix="sw-") as name, ExitStack() as stack:
        folder = Path(name)
        fleets = folder / "fleets"
        daemon = stack.enter_context(running_daemon(folder, "--fleets", str(fleets)))
        client = stack.enter_context(Client(daemon.address))
        planned = planned_job(client, small_job(folder))
        runs = [_measured(client, daemon, planned, fleets, folder / f"{n}") for n in range(count)]
    times_s, decisions_s = sorted(run[0] for run in runs), sorted(run[1] for run in runs)
    return [
        ("notices", f"{count}"),
        ("to new variables, p50", f"{statistics.median(times_s):.2f} s"),
        ("to new variables, p99", f"{_p99(times_s):.2f} s (target {TARGET_S:g} s)"),
        ("of it, decision p50", f"{statistics.median(decisions_s):.2f} s"),
        ("of it, decision p99", f"{_p99(decisions_s):.2f} s"),
    ]


def _measured(
    client: Client, daemon: DaemonProcess, planned: PlannedFleet, fleets: Path, folder: Path
) -> tuple[float, float]:
    """Return how long one notice took, and the decision."""
    job_id = started_job(client, planned, Steer.WRITE)
    variables = fleets / job_id / "fleet.auto.tfvars.json"
    with ExitStack() as stack:
        flags = ["--daemon", daemon.address, "--job-id", job_id]
        host = one_host(stack, folder, planned, flags)
        until(lambda: client.list_agents(job_id=job_id).agents)
        until(variables.exists)
        before = variables.read_bytes()
        started_s = time.perf_counter()
        host.cloud.interrupt(seconds=120)
        until(lambda: variables.read_bytes() != before)
        took_s = time.perf_counter() - started_s
    event = event_of(client, job_id, "replanned")
    assert event is not None
    client.stop_job(job_id)
    return took_s, float(event.facts["decision_s"])


def _p99(values: list[float]) -> float:
    return values[min(len(values) - 1, int(0.99 * len(values)))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    for name, value in notice_to_tfvars(parser.parse_args().count):
        print(f"{name:<28} {value}")


if __name__ == "__main__":
    main()
