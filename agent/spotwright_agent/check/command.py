"""`spotwright-agent check`: what can be read on this host, what not, and why."""

import argparse
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from spotwright_agent.readings import CollectorError, GpuReading, HostSample
from spotwright_agent.settings import Settings, SettingsError, add_setting_flags, settings_of
from spotwright_agent.tls_files import pair_problem

_PATIENCE_S = 10.0  # for a driver that may hang
_CONNECT_S = 3.0
_SAMPLES, _SAMPLE_GAP_S = 8, 0.25
_GPU_FIGURES = tuple(
    figure.name for figure in fields(GpuReading) if figure.name not in ("gpu_index", "pcie_source")
)


def add_check_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check` and its flags."""
    about = "tell what can be read on this host, and what not"
    parser = commands.add_parser("check", help=about, description=about.capitalize() + ".")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--hardware", action="store_true",
        help="watch the GPUs for a while, under load if torch is here; exit 1 if figures are off",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=int, default=10, metavar="N", help="how long --hardware watches [10]"
    )
    add_setting_flags(parser)
    parser.set_defaults(act=run_check)


def run_check(options: argparse.Namespace) -> int:
    """Look around and print what was found; only `--hardware` judges it."""
    found = check(settings_of(options))
    problems: Sequence[str] = ()
    if options.hardware:
        from spotwright_agent.check.hardware import check_hardware  # noqa: PLC0415

        found["hardware"] = check_hardware(seconds=max(options.seconds, 2))
        problems = found["hardware"]["problems"]
    from spotwright_agent.check.text import as_text  # noqa: PLC0415

    print(json.dumps(found, indent=2) if options.json else as_text(found))
    return 1 if problems else 0


def check(settings: Settings) -> dict[str, Any]:
    """Return what is found here, as JSON has it."""
    samples, faults = _sample(settings)
    return {
        **_gpus(),
        "gpu_figures": gpu_figures(samples),
        "interfaces": _interfaces(settings),
        "rdma_ports": _rdma_ports(settings),
        "host_figures": sorted({name for each in samples for name in each.figures} - {"gpus"}),
        "faults": faults,
        "cloud": _cloud(settings),
        "training_socket": _training_socket(settings),
        "folders": {
            path: _folder_problem(Path(path)) for path in (settings.state_dir, settings.runtime_dir)
        },
        "spool": _spool(settings),
        "daemon": _daemon(settings),
        "certificate": _certificate(settings),
        "service": _service(),
    }


def gpu_figures(samples: Sequence[HostSample]) -> list[dict[str, Any]]:
    """Return for each GPU which figures it has, which not, and where those of PCIe come from."""
    seen: dict[int, dict[str, Any]] = {}
    for reading in (gpu for sample in samples for gpu in sample.figures.get("gpus", ())):
        known = seen.setdefault(reading.gpu_index, {"readable": set(), "pcie_source": None})
        known["readable"] |= {name for name in _GPU_FIGURES if getattr(reading, name) is not None}
        known["pcie_source"] = reading.pcie_source or known["pcie_source"]
    return [
        {
            "index": index,
            "readable": [name for name in _GPU_FIGURES if name in known["readable"]],
            "not_readable": [name for name in _GPU_FIGURES if name not in known["readable"]],
            "pcie_source": known["pcie_source"],
        }
        for index, known in sorted(seen.items())
    ]


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """Return what a call returns or raises; TimeoutError if it takes longer."""
    ended: list[Any] = []

    def work() -> None:
        try:
            ended.append((call(), None))
        except Exception as error:  # raised again below, in the thread that asked
            ended.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    value, error = ended[0]
    if error is not None:
        raise error
    return value


def _gpus() -> dict[str, Any]:
    from spotwright_agent.collectors.gpu import (  # noqa: PLC0415
        GpuUnavailableError,
        read_driver,
        read_gpus,
    )

    try:
        gpus, driver = within(_PATIENCE_S, lambda: (read_gpus(), read_driver()))
    except (GpuUnavailableError, TimeoutError) as error:
        return {"gpus": [], "gpu_problem": str(error), "driver": None}
    return {"gpus": [asdict(gpu) for gpu in gpus], "gpu_problem": None, "driver": asdict(driver)}


def _sample(settings: Settings) -> tuple[list[HostSample], dict[str, str]]:
    """Sample for a moment: rates need two, and PCIe that is sampled takes turns between GPUs."""
    from spotwright_agent.collectors.all import open_collectors  # noqa: PLC0415
    from spotwright_agent.sampling import Sampler  # noqa: PLC0415

    collectors = open_collectors(sysfs=Path(settings.sysfs), procfs=Path(settings.procfs))
    sampler = Sampler(collectors, slow_s=_PATIENCE_S)
    samples: list[HostSample] = []
    for turn in range(_SAMPLES):
        if turn:
            time.sleep(_SAMPLE_GAP_S)
        now_s, now_unix_ms = time.monotonic(), int(time.time() * 1000)
        samples.append(sampler.sample(now_s=now_s, time_unix_ms=now_unix_ms))
        is_complete = all(known["pcie_source"] for known in gpu_figures(samples))
        if turn and (is_complete or sampler.faults.get("gpu")):
            break
    return samples, dict(sampler.faults)


def _interfaces(settings: Settings) -> list[dict[str, Any]]:
    from spotwright_agent.collectors.network import read_interfaces  # noqa: PLC0415

    return [asdict(each) for each in read_interfaces(Path(settings.sysfs) / "class" / "net")]


def _rdma_ports(settings: Settings) -> list[str]:
    from spotwright_agent.collectors.rdma import rdma_ports  # noqa: PLC0415

    root = Path(settings.sysfs) / "class" / "infiniband"
    try:
        return [str(port.relative_to(root)) for port in rdma_ports(root)]
    except CollectorError:
        return []  # told among the faults


def _cloud(settings: Settings) -> dict[str, Any]:
    from spotwright_agent.interruption.detect import find_cloud  # noqa: PLC0415
    from spotwright_agent.interruption.source import MetadataError  # noqa: PLC0415

    source = None
    try:
        source = find_cloud(
            settings.cloud,
            base_url=settings.metadata_url,
            dmi=Path(settings.sysfs) / "class" / "dmi" / "id",
            is_spot=settings.market == "spot",
        )
        if source is None:
            why = "switched off" if settings.cloud == "none" else "no metadata server answers"
            return {"name": None, "problem": why}
        facts, notice = asdict(source.facts()), source.current(int(time.time() * 1000))
    except MetadataError as error:
        return {"name": source and source.name, "problem": str(error)}
    told = None if notice is None else asdict(notice)
    return {"name": source.name, "problem": None, **facts, "notice": told}


def _training_socket(settings: Settings) -> dict[str, Any]:
    problem = None
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(settings.socket_path))
        except OSError as error:
            problem = f"no agent listens: {error.strerror or error}"
    return {"path": str(settings.socket_path), "problem": problem}


def _folder_problem(folder: Path) -> str | None:
    if not folder.is_dir():
        return "is not there: the service makes it, `spotwright-agent install`"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "cannot be written by this user"
    return None


def _spool(settings: Settings) -> dict[str, Any]:
    try:
        free_bytes = shutil.disk_usage(settings.state_dir).free
        used_bytes = sum(each.stat().st_size for each in Path(settings.state_dir).glob("spool.db*"))
    except OSError as error:
        return {"used_bytes": None, "free_bytes": None, "problem": error.strerror}
    keep_bytes = settings.spool_keep_free_mib * 2**20
    problem = None
    if free_bytes < keep_bytes:
        problem = f"nothing is spooled: less than {settings.spool_keep_free_mib:g} MiB are free"
    return {"used_bytes": used_bytes, "free_bytes": free_bytes, "problem": problem}


def _daemon(settings: Settings) -> dict[str, Any]:
    """Tell whether the daemon takes a connection, and over TLS our certificate."""
    from spotwright_agent.report.channel import reach_problem  # noqa: PLC0415

    try:
        problem = reach_problem(settings.daemon, tls=settings.tls_files, timeout_s=_CONNECT_S)
    except SettingsError as error:
        problem = str(error)
    return {
        "address": settings.daemon,
        "tls": settings.tls_files is not None,
        "problem": problem or None,
    }


def _certificate(settings: Settings) -> dict[str, Any] | None:
    from spotwright_agent.report.certificate_times import (  # noqa: PLC0415
        CertificateUnreadableError,
        days_left,
    )

    if settings.tls_files is None:
        return None
    file = settings.tls_files.certificate
    try:
        days = days_left(file)
    except CertificateUnreadableError as error:
        return {"file": str(file), "days_left": None, "problem": str(error)}
    problem = "it has ended: the daemon refuses it" if days < 0 else ""
    problem = problem or pair_problem(settings.tls_files, settings.name)
    return {"file": str(file), "days_left": round(days, 1), "problem": problem or None}


def _service() -> dict[str, Any]:
    tool = shutil.which("systemctl")
    if tool is None or not Path("/run/systemd/system").is_dir():
        return {"state": None, "problem": "systemd does not run here"}
    import subprocess  # noqa: PLC0415  not for `run`

    asked = [tool, "is-active", "spotwright-agent.service"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    state = done.stdout.strip() or "unknown"
    return {"state": state, "problem": None if state == "active" else f"the service is {state}"}
