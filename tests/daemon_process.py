"""A real daemon in a process of its own, for tests that use it as people and agents do."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.ports import stable_port

START_S = 60.0  # a shared machine; a quiet one needs one or two


class DaemonProcess:
    """`spotwright serve` on a free port of loopback."""

    def __init__(self, folder: Path, *flags: str, listen: str | None = None) -> None:
        self.folder, self.flags = folder, flags
        self.listen = listen or f"127.0.0.1:{stable_port()}"
        self.told: dict[str, Any] = {}
        self.log: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self.told["listen"])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.folder / 'daemon.db'}"

    def start(self) -> "DaemonProcess":
        """Start it, at the same address as before, and return when it serves."""
        command = [str(Path(sys.executable).with_name("spotwright")), "serve", "--json"]
        flags = ["--listen", self.listen, "--metrics", "127.0.0.1:0", *self.flags]
        if "--store" not in self.flags:
            flags += ["--store", self.store_url]
        self._process = subprocess.Popen(
            [*command, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(self.folder)),
        )  # fmt: skip
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr,))
        self._reader.start()
        self.told = self._first_line()
        return self

    def _first_line(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        giving_up = threading.Timer(START_S, self._process.kill)
        giving_up.start()
        line = self._process.stdout.readline()
        giving_up.cancel()
        if not line:
            self.wait()
            raise AssertionError(f"the daemon did not start: {self.log}")
        told: dict[str, Any] = json.loads(line)
        return told

    def _read_log(self, stream: IO[str]) -> None:
        for line in stream:
            self.log.append(line.rstrip())

    def stop(self, *, signal_number: int = signal.SIGTERM) -> int:
        """End it in good order and return its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal_number)
        return self.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        self.stop(signal_number=signal.SIGKILL)

    def wait(self, *, timeout_s: float = START_S) -> int:
        """Wait for its end."""
        process = self._process
        assert process is not None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            if self._reader is not None:
                self._reader.join()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        return code

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def events(self, message: str) -> Sequence[dict[str, Any]]:
        """Return what it logged under a message."""
        records = [json.loads(line) for line in self.log if line.startswith("{")]
        return [record for record in records if record["message"] == message]


@contextmanager
def running_daemon(folder: Path, *flags: str, listen: str | None = None) -> Iterator[DaemonProcess]:
    """Start a daemon and end it, whatever happens in between."""
    daemon = DaemonProcess(folder, *flags, listen=listen)
    try:
        yield daemon.start()
    finally:
        if daemon.is_running():
            daemon.stop()
