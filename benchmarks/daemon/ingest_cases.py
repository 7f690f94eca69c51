"""Telemetry under load: how much of a core, how much memory, how late, and is all of it there."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.daemon.listed_rows import listed_row_count
from benchmarks.daemon.served import ServedDaemon
from benchmarks.table import print_table

_GAP_PERIOD_S = 20.0  # the daemon tells the longest of the last 30 s
_AFTER_S = 60.0  # for the last acknowledgements
_SHARE, _RSS_MB, _ACK_P99_S, _GAP_S, _SETTLED_S = 0.70, 300.0, 2.0, 0.1, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCase:
    """Agents, and how often they send."""

    what: str
    agents: int
    batch_s: float
    duration_s: float
    ramp_s: float
    held_only: bool = False  # nobody may be lost, and that is all that is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of it."""

    load: dict[str, Any]
    cpu_share: float
    peak_rss_mb: float
    loop_gap_s: float
    rows_listed: int
    settled_s: float | None = None  # after a restart: until the last agent is welcome


def print_ingest(*, quick: bool) -> None:
    """Print 1,000 agents with 8 GPUs each that send every second."""
    _print_load(
        LoadCase(
            what="1 s batches",
            agents=100 if quick else 1_000,
            batch_s=1.0,
            duration_s=10.0 if quick else 60.0,
            ramp_s=10.0,
        )
    )


def print_many_agents(*, quick: bool) -> None:
    """Print 5,000 agents with 8 GPUs each that send 10 samples every 10 s."""
    _print_load(
        LoadCase(
            what="10 s batches",
            agents=200 if quick else 5_000,
            batch_s=10.0,
            duration_s=20.0 if quick else 120.0,
            ramp_s=5.0 if quick else 60.0,
            held_only=True,
        )
    )


def print_storm(*, quick: bool) -> None:
    """Print 1,000 agents whose daemon is killed and comes back."""
    case = LoadCase(
        what="killed and restarted",
        agents=100 if quick else 1_000,
        batch_s=1.0,
        duration_s=20.0 if quick else 40.0,
        ramp_s=10.0,
    )
    with tempfile.TemporaryDirectory() as folder, ServedDaemon(Path(folder)) as daemon:
        found = _run_storm(daemon, case)
    _print_measured("Reconnect storm", case, found)


def _print_load(case: LoadCase) -> None:
    with tempfile.TemporaryDirectory() as folder, ServedDaemon(Path(folder)) as daemon:
        found = _run_load(daemon, case)
    _print_measured("Ingest", case, found)


def _run_load(daemon: ServedDaemon, case: LoadCase) -> Measured:
    """Measure from the moment when all agents are connected until they stop sending."""
    with start_load(daemon, case) as load:
        time.sleep(case.ramp_s)
        gaps_s, cpu_s, started_s = [0.0], daemon.cpu_s(), time.monotonic()
        while (left_s := started_s + case.duration_s - time.monotonic()) > 0:
            time.sleep(min(_GAP_PERIOD_S, left_s))
            gaps_s.append(daemon.loop_gap_s())
        share = (daemon.cpu_s() - cpu_s) / (time.monotonic() - started_s)
        told = told_by(load)
    rows = listed_row_count(daemon, sorted(told.pop("acked")))
    return Measured(
        load=told,
        cpu_share=share,
        peak_rss_mb=daemon.peak_rss_mb(),
        loop_gap_s=max(gaps_s),
        rows_listed=rows,
    )


def _run_storm(daemon: ServedDaemon, case: LoadCase) -> Measured:
    """Kill the daemon under load, and measure from when it serves again."""
    with start_load(daemon, case) as load:
        time.sleep(case.ramp_s + 5.0)
        daemon.end(signal.SIGKILL)
        daemon.start()
        served_unix_s, started_s = time.time(), time.monotonic()
        told = told_by(load)
        share = daemon.cpu_s() / (time.monotonic() - started_s)
    rows = listed_row_count(daemon, sorted(told.pop("acked")))
    return Measured(
        load=told,
        cpu_share=share,
        peak_rss_mb=daemon.peak_rss_mb(),
        loop_gap_s=daemon.loop_gap_s(),
        rows_listed=rows,
        settled_s=told["last_welcome_unix_s"] - served_unix_s,
    )


def start_load(daemon: ServedDaemon, case: LoadCase) -> "subprocess.Popen[str]":
    """Start the agents in a process of their own, and return when they begin to connect."""
    load = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.daemon.load", "--address", daemon.address),
            *("--tls-dir", str(daemon.tls_dir), "--agents", str(case.agents)),
            *("--batch-s", str(case.batch_s), "--duration-s", str(case.duration_s)),
            *("--ramp-s", str(case.ramp_s)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert load.stderr is not None
    load.stderr.readline()
    return load


def told_by(load: "subprocess.Popen[str]") -> dict[str, Any]:
    out, problems = load.communicate(timeout=300.0 + _AFTER_S)
    if load.returncode:
        raise RuntimeError(f"the agents failed: {problems}")
    told: dict[str, Any] = json.loads(out)
    return told


def _print_measured(title: str, case: LoadCase, found: Measured) -> None:
    load = found.load
    rows = f"{load['rows_sent']:,} / {found.rows_listed:,}"
    complete = (
        load["rows_sent"] == found.rows_listed and load["batches_sent"] == load["batches_acked"]
    )
    lines = [
        ("daemon, share of one core", f"{found.cpu_share:.2f}", *against(found.cpu_share, _SHARE)),
        ("daemon, peak RSS MB", f"{found.peak_rss_mb:.0f}", *against(found.peak_rss_mb, _RSS_MB)),
        ("loop's longest gap s", f"{found.loop_gap_s:.3f}", *against(found.loop_gap_s, _GAP_S)),
        ("ack p50 s", f"{load['ack_p50_s']:.2f}", "-", "no target"),
        ("ack p99 s", f"{load['ack_p99_s']:.2f}", *against(load["ack_p99_s"], _ACK_P99_S)),
        ("rows acknowledged / listed", rows, "equal", "met" if complete else "missed"),
        ("batches for each ack", f"{load['batches_acked'] / max(1, load['acks']):.2f}", "-", "-"),
        ("sessions / how they failed", f"{load['sessions']} / {load['problems']}", "-", "-"),
        ("load, CPU s of wall s", f"{load['cpu_s']:.1f} of {load['wall_s']:.1f}", "-", "-"),
    ]
    if found.settled_s is not None:
        settled = against(found.settled_s, _SETTLED_S)
        lines = [("last agent welcome after s", f"{found.settled_s:.1f}", *settled), *lines[1:]]
        lines = [line for line in lines if "ack p" not in line[0]]
    if case.held_only:
        lines = [(*line[:2], "-", "no target") if "<=" in line[2] else line for line in lines]
        held = load["sessions"] == case.agents
        sessions = f"{load['sessions']:,} / {load['problems']}"
        lines[-2] = (
            "sessions / how they failed",
            sessions,
            "one each",
            "met" if held else "missed",
        )
    what = f"{title}: {case.agents:,} agents x 8 GPUs x 1 Hz, {case.what}, {case.duration_s:.0f} s"
    print_table(what, ("figure", "found", "target", "verdict"), lines)


def against(value: float, most: float) -> tuple[str, str]:
    return f"<= {most:g}", "met" if value <= most else "missed"
