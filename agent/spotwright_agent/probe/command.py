"""`spotwright-agent probe`: measure the network to another host, or answer who measures."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from spotwright_agent.readings import ProbeResult
from spotwright_agent.settings import SettingsError, read_settings
from spotwright_agent.stop_signals import event_of_stop_signals
from spotwright_agent.tls_files import TlsFiles


def add_probe_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `probe` and its flags."""
    about = "measure bandwidth and round trip to another host, in a few seconds"
    parser = commands.add_parser("probe", help=about, description=about.capitalize() + ".")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("peer", nargs="?", metavar="PEER", help="HOST, HOST:PORT or [IPV6]:PORT")
    ways.add_argument("--listen", metavar="HOST:PORT", help="answer probes here, until Ctrl-C")
    parser.add_argument(
        "--seconds", type=float, default=3.0, metavar="N", help="in each direction [3]"
    )
    parser.add_argument(
        "--max-mbps", type=float, default=100_000.0, metavar="N", help="no faster [100000]"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings of the agent")
    parser.add_argument("--tls-dir", metavar="DIR", help="folder with ca.crt and agents/ID.crt")
    parser.add_argument("--agent-id", metavar="TEXT", help="name of this agent")
    parser.add_argument("--insecure", action="store_true", help="do without TLS off loopback")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(act=run_probe)


def run_probe(options: argparse.Namespace) -> int:
    """Measure, or listen; exit 1 where there is no result."""
    tls = _tls(options)
    if options.listen:
        return _listen(options.listen, tls, insecure=options.insecure)
    from spotwright_agent.probe.errors import ProbeError  # noqa: PLC0415
    from spotwright_agent.probe.measure import measure  # noqa: PLC0415
    from spotwright_agent.probe.terms import Terms  # noqa: PLC0415

    try:
        Terms(duration_s=options.seconds, max_mbps=options.max_mbps)
    except ProbeError as error:
        raise SettingsError(str(error)) from error
    found = measure(
        options.peer,
        duration_s=options.seconds,
        max_mbps=options.max_mbps,
        tls=tls,
        insecure=options.insecure,
    )
    if options.json:
        print(json.dumps(asdict(found)))
    elif found.problem:
        print(f"error: {options.peer}: {found.problem}", file=sys.stderr)
    else:
        print(_text(found))
    return 1 if found.problem else 0


def _tls(options: argparse.Namespace) -> TlsFiles | None:
    """Return the agent's own certificate, unless a person does without."""
    if options.insecure:
        return None
    flags = {"tls_dir": options.tls_dir, "agent_id": options.agent_id}
    return read_settings(flags=flags, file=options.config).tls_files


def _listen(address: str, tls: TlsFiles | None, *, insecure: bool) -> int:
    from spotwright_agent.probe.errors import ProbeError  # noqa: PLC0415
    from spotwright_agent.probe.listener import ProbeListener  # noqa: PLC0415

    stopping = event_of_stop_signals()
    try:
        listener = ProbeListener(address, tls=tls, insecure=insecure)
    except ProbeError as error:
        raise SettingsError(str(error)) from error
    print(f"answers probes on {address.rpartition(':')[0]}:{listener.port}", flush=True)
    listener.run(stopping)
    return 0


def _text(found: ProbeResult) -> str:
    assert found.sent_mbps is not None
    assert found.received_mbps is not None
    assert found.round_trip_s is not None
    lines = [
        f"to {found.peer}     {found.sent_mbps / 1000:.2f} Gbit/s",
        f"from {found.peer}   {found.received_mbps / 1000:.2f} Gbit/s",
        f"round trip   {found.round_trip_s * 1e3:.3f} ms",
    ]
    if found.limited_by:
        lines.append(f"held down by {found.limited_by}, not by the network")
    return "\n".join(lines)
