"""`spotwright serve` in a process of its own, with certificates and a store in a folder."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.daemon.load import raise_file_limit
from spotwright.adapters.store.sql_store import open_store
from spotwright.adapters.tls.issue_files import init_folder
from spotwright.domain.access import AccessRole
from spotwright.usecases.tokens import create_token

_MAIN = "from spotwright.cli.entry import main; main()"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOP_GAP = "spotwright_event_loop_lag_seconds"
_END_TIMEOUT_S = 30.0


class ServedDaemon:
    """A daemon that can be measured, killed and started again."""

    def __init__(self, folder: Path) -> None:
        raise_file_limit()
        self.tls_dir, self.store_url = folder / "tls", f"sqlite:///{folder / 'daemon.db'}"
        self.tls_dir.mkdir()
        now = datetime.now(UTC)
        init_folder(self.tls_dir, hosts=["127.0.0.1", "localhost"], now=now)
        store = open_store(self.store_url)
        token = create_token(store, name="bench", role=AccessRole.ADMIN, valid_s=None, now=now)
        store.close()
        self.token = token.text
        self._log = folder / "daemon.log"
        self._listen, self._metrics = "127.0.0.1:0", ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.end(signal.SIGTERM)

    @property
    def address(self) -> str:
        """Where it listens."""
        return self._listen

    def start(self) -> float:
        """Start it, where it listened before; return the seconds until it serves."""
        started_s = time.monotonic()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c", _MAIN, "serve", "--json"),
                    *("--listen", self._listen, "--metrics", self._metrics or "127.0.0.1:0"),
                    *("--store", self.store_url, "--tls-dir", str(self.tls_dir)),
                    *("--log-level", "warning"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        facts = json.loads(self._process.stdout.readline() or self._log.read_text())
        self._listen, self._metrics = facts["listen"], facts["metrics"]
        return time.monotonic() - started_s

    def end(self, number: signal.Signals) -> None:
        """End it and its worker processes."""
        if self._process is not None:
            self._process.send_signal(number)
            if number is signal.SIGKILL:
                os.killpg(self._process.pid, number)
            try:
                self._process.communicate(timeout=_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                raise
            finally:
                self._process = None

    def cpu_s(self) -> float:
        """CPU seconds of the daemon itself, all threads."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def peak_rss_mb(self) -> float:
        """Most memory that it ever had."""
        lines = dict(line.split(":", 1) for line in self._proc("status").splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024

    def loop_gap_s(self) -> float:
        """Longest time that the event loop did not come round, lately."""
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=10) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(f"{_LOOP_GAP} "):
                    return float(line.split()[1])
        raise LookupError(f"{_LOOP_GAP} is not exported")

    def log(self) -> str:
        """What it said that was worth a warning."""
        return self._log.read_text()

    def _proc(self, name: str) -> str:
        assert self._process is not None
        return Path(f"/proc/{self._process.pid}/{name}").read_text()
