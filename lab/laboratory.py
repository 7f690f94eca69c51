"""The laboratory while scenarios run: switch, hosts, a daemon, an agent on each host."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from lab.catalog import write_catalog
from lab.cpu_quota import CpuQuotas
from lab.hosts import Host, HostProcess, preload
from lab.network import Network, address_of
from lab.scenario import MOST_SERVERS, MOST_WORKERS
from spotwright.adapters.tls.authority import DEFAULT_DAYS, CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright.client import Client
from spotwright.domain.errors import OutsideWorldError

HOST_NAMES = tuple(f"w{i + 1}" for i in range(MOST_WORKERS)) + tuple(
    f"s{i + 1}" for i in range(MOST_SERVERS)
)
DAEMON = f"{address_of(1)}:7443"
_FULL_MBPS = 1000.0  # of links that no scenario has set
_PRELOADED = ("lab.roles", "torch._dynamo", "torch.distributed")
_PATIENCE_S = 180.0  # others may use the machine, too
_CLONE_NEWNS = 0x00020000


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """What scenarios run on."""

    network: Network
    quotas: CpuQuotas
    hosts: dict[str, Host]
    tls_dir: Path
    folder: Path  # for what runs write down

    def reset(self) -> None:
        """Give every host a whole link and all CPUs again."""
        for name in HOST_NAMES:
            self.network.mend(name)
            self.network.set_rate(name, _FULL_MBPS)
            self.quotas.set(name, None)


@contextmanager
def built(folder: Path, *, owner_pid: int) -> Iterator[Laboratory]:
    """Build switch and hosts; all of it ends with this process's namespaces."""
    network, quotas, hosts = Network(), CpuQuotas(owner_pid), {}
    for number, name in enumerate(HOST_NAMES, start=2):
        network.add(name, number)
        state = folder / "hosts" / name
        state.mkdir(parents=True)
        hosts[name] = Host(
            name=name,
            address=address_of(number),
            group=quotas.group(name),
            agent_socket=state / "training.sock",
        )
    preload(_PRELOADED)
    tls_dir = _certificates(folder / "tls", [host.address for host in hosts.values()])
    lab = Laboratory(network=network, quotas=quotas, hosts=hosts, tls_dir=tls_dir, folder=folder)
    lab.reset()
    yield lab


@contextmanager
def daemon_running(lab: Laboratory, *flags: str) -> Iterator[Client]:
    """Run the daemon beside the switch, and return a client of it."""
    program = str(Path(sys.executable).with_name("spotwright"))
    store, catalog = lab.folder / "daemon.db", lab.folder / "catalog.json"
    write_catalog(catalog)
    command = [program, "serve", "--listen", DAEMON, "--tls-dir", str(lab.tls_dir)]
    command += ["--store", f"sqlite:///{store}", "--metrics", "off", "--history", "off"]
    command += ["--catalog", str(catalog), *flags]
    with (lab.folder / "daemon.log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        with Client(DAEMON, tls_dir=lab.tls_dir, token=_token(program, store)) as client:
            _until_serving(client, process)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
        process.kill()


@contextmanager
def agents_running(lab: Laboratory, *flags: str) -> Iterator[dict[str, HostProcess]]:
    """Run an agent on each host."""
    agents = {name: start_agent(lab, name, *flags) for name in lab.hosts}
    try:
        yield agents
    finally:
        for agent in agents.values():
            agent.kill()


def start_agent(lab: Laboratory, name: str, *flags: str) -> HostProcess:
    """Start the agent of a host, which must have none."""
    return HostProcess(
        lab.hosts[name], _become_agent, lab.folder / "hosts" / name, lab.tls_dir, flags
    )


def until_connected(client: Client) -> None:
    """Wait until the daemon hears all agents.

    Raises:
        OutsideWorldError: it does not.
    """
    end_s = time.monotonic() + _PATIENCE_S
    while True:
        agents = client.list_agents().agents
        if sum(agent.connected for agent in agents) == len(HOST_NAMES):
            return
        if time.monotonic() > end_s:
            raise OutsideWorldError(f"the daemon hears {len(agents)} of {len(HOST_NAMES)} agents")
        time.sleep(0.2)


def steps_heard(client: Client) -> int:
    """Return how many steps the daemon has stored, of all hosts."""
    end = datetime.now(UTC) + timedelta(minutes=1)
    start, heard = end - timedelta(days=1), 0
    for name in HOST_NAMES:
        token = ""
        while True:
            page = client.list_rollups(name, start=start, end=end, page_token=token)
            heard += sum(part.step_count for part in page.rollups)
            token = page.next_page_token
            if not token:
                break
    return heard


def _become_agent(_pipe: Connection, state: Path, tls_dir: Path, flags: tuple[str, ...]) -> None:
    """Turn into the agent, which sees the network of its host in a sysfs of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no mounts of its own for an agent")
    sysfs = state / "sys"
    sysfs.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "sysfs", "none", str(sysfs)], check=True)
    log = os.open(state / "agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    program = str(Path(sys.executable).with_name("spotwright-agent"))
    told = {
        "--config": os.devnull,
        "--agent-id": state.name,
        "--daemon": DAEMON,
        "--tls-dir": str(tls_dir),
        "--state-dir": str(state),
        "--runtime-dir": str(state),
        "--spool-keep-free-mib": "0",
        "--cloud": "none",
        "--sysfs": str(sysfs),
    }
    words = [word for pair in told.items() for word in pair]
    os.execv(program, [program, "run", *words, *flags])


def _token(program: str, store: Path) -> str:
    command = [program, "tokens", "create", "lab", "--role", "admin", "--json"]
    made = subprocess.run(
        [*command, "--store", f"sqlite:///{store}"], check=True, capture_output=True, text=True
    )
    token: str = json.loads(made.stdout)["token"]
    return token


def _until_serving(client: Client, process: "subprocess.Popen[bytes]") -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s and process.poll() is None:
        with suppress(OutsideWorldError):
            if client.check_health():
                return
        time.sleep(0.2)
    raise OutsideWorldError("the daemon does not serve: see daemon.log in the laboratory's folder")


def _certificates(folder: Path, addresses: list[str]) -> Path:
    now, agent = datetime.now(UTC), CertificateKind.AGENT
    init_folder(folder, hosts=[address_of(1), *addresses], now=now)
    requests = [
        CertificateRequest(kind=agent, name=name, days=DEFAULT_DAYS[agent]) for name in HOST_NAMES
    ]
    issue(folder, requests, now=now)
    return folder
