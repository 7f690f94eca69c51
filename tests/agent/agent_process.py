"""A real agent in a process of its own, for tests that use it as a host does."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PATIENCE_S = 60.0  # a shared machine; a quiet one needs a second or two


class AgentProcess:
    """`spotwright-agent run`, which keeps its state in a folder from one start to the next."""

    def __init__(
        self, folder: Path, *flags: str, environment: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.flags = folder, flags
        self.environment = dict(environment or {})
        # Not below `folder`: the name of a Unix socket has room for some 100 characters.
        self._short = tempfile.TemporaryDirectory(prefix="sw-")
        self.runtime_dir = Path(self._short.name)
        self.log: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def socket_path(self) -> Path:
        """Where training processes report their steps."""
        return self.runtime_dir / "training.sock"

    @property
    def notice_path(self) -> Path:
        """Where training processes find what the cloud said."""
        return self.runtime_dir / "notice.json"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> "AgentProcess":
        """Start it; it may take a moment until it does anything."""
        command = [str(Path(sys.executable).with_name("spotwright-agent")), "run"]
        folders = [
            "--config", os.devnull, "--state-dir", str(self.folder), "--spool-keep-free-mib", "0",
            "--runtime-dir", str(self.runtime_dir),
        ]  # fmt: skip
        cloud = [] if "--cloud" in self.flags else ["--cloud", "none"]
        self._process = subprocess.Popen(
            [*command, *folders, *cloud, *self.flags],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
        )
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr,))
        self._reader.start()
        return self

    def _read_log(self, stream: IO[str]) -> None:
        for line in stream:
            self.log.append(line.rstrip())

    def stop(self, *, signal_number: int = signal.SIGTERM) -> int:
        """End it in good order and return its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal_number)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        process = self._process
        assert process is not None
        try:
            return process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            assert self._reader is not None
            self._reader.join()
            assert process.stderr is not None
            process.stderr.close()

    def kill(self) -> None:
        """End it as a crash would."""
        self.stop(signal_number=signal.SIGKILL)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def forget(self) -> None:
        """Remove what it left outside its folder."""
        self._short.cleanup()


@contextmanager
def running_agent(
    folder: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[AgentProcess]:
    """Start an agent and end it, whatever happens in between."""
    agent = AgentProcess(folder, *flags, environment=environment)
    try:
        yield agent.start()
    finally:
        if agent.is_running():
            agent.stop()
        agent.forget()
