"""How the training job learns what the cloud or the daemon said: file, socket and signal.

The file `notice.json` holds what stands; it is there as long as a hint or an interruption holds.
`checkpoint.json` holds the daemon's latest request to save. The same documents go to the training
processes that report their steps. A signal says only "save now, and look", so it is sent for
interruptions and requests to save, not for hints nor for what is withdrawn.

    {"kind": "interruption", "deadline_unix_ms": 1794975978000, "seconds_left": 119.5,
     "source": "aws", "detail": "spot instance-action: terminate", "time_unix_ms": 1794975858451}
    {"kind": "checkpoint", "seconds_left": 90.0, "interval_s": null, "time_unix_ms": 1794975858451}
"""

import contextlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotwright_agent.job_pid_file import signal_named
from spotwright_agent.readings import Notice, NoticeKind

_MAX_PROBLEM = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignal:
    """A signal, and the processes that get it."""

    number: int
    # Signals those that report their steps; returns by process why that failed, or "".
    to_reporters: Callable[[int], Mapping[int, str]]
    pid_file: Path | None = None  # more of them, one a line


class JobWarning:
    """Tells the job in every way there is; what fails in one way does not stop the others.

    Any thread may call it. Nothing is raised.
    """

    def __init__(
        self,
        notice_path: Path,
        *,
        send: Callable[[bytes], object],
        on_problem: Callable[[str], None],
        signal: JobSignal | None = None,
    ) -> None:
        """Take the ways.

        Args:
            notice_path: the file for what stands, in a folder that the job can read.
            send: passes one datagram to the training processes, without waiting for them.
            on_problem: gets which ways failed, and "" after all of them worked.
            signal: None sends no signal.
        """
        self._notice_path = notice_path
        self._checkpoint_path = notice_path.with_name("checkpoint.json")
        self._send = send
        self._on_problem = on_problem
        self._signal = signal
        self._standing: Notice | None = None
        self._file_lock = threading.Lock()

    def clear_request(self) -> None:
        """Remove a request that an earlier run of the agent left; a notice may still stand."""
        problems: list[str] = []
        with self._file_lock, _noting(problems, "file"):
            self._checkpoint_path.unlink(missing_ok=True)
        self._tell(problems)

    def clear_notice(self) -> None:
        """Remove a notice that an earlier run left, now that it is known whether one stands."""
        problems: list[str] = []
        with self._file_lock, _noting(problems, "file"):
            if self._standing is None:
                self._notice_path.unlink(missing_ok=True)
        self._tell(problems)

    def warn(self, notice: Notice) -> None:
        """Tell what the cloud said."""
        problems: list[str] = []
        with self._file_lock, _noting(problems, "file"):
            if notice.kind is NoticeKind.WITHDRAWN:
                self._standing = None
                self._notice_path.unlink(missing_ok=True)
            else:
                self._standing = notice
                _replace_file(self._notice_path, _notice_document(notice))
        with _noting(problems, "socket"):
            self._send(_notice_document(notice))
        if notice.kind is NoticeKind.INTERRUPTION:
            self._signal_all(problems)
        self._tell(problems)

    def checkpoint(self, *, seconds_left: float | None, interval_s: float | None) -> None:
        """Ask the job to save its state."""
        problems: list[str] = []
        document = _checkpoint_document(seconds_left, interval_s)
        with self._file_lock, _noting(problems, "file"):
            _replace_file(self._checkpoint_path, document)
        with _noting(problems, "socket"):
            self._send(document)
        self._signal_all(problems)
        self._tell(problems)

    def standing(self) -> bytes | None:
        """Return what holds, for a process that comes later, with the seconds left by now."""
        notice = self._standing
        return None if notice is None else _notice_document(notice)

    def _signal_all(self, problems: list[str]) -> None:
        if self._signal is None:
            return
        number, told = self._signal.number, dict[int, str]()
        with _noting(problems, "signal"):
            told.update(self._signal.to_reporters(number))
        if self._signal.pid_file is not None:
            with _noting(problems, "pid file"):
                told.update(signal_named(self._signal.pid_file, number, besides=told))
        problems += [f"signal to process {pid}: {why}" for pid, why in told.items() if why]

    def _tell(self, problems: list[str]) -> None:
        self._on_problem("; ".join(problems)[:_MAX_PROBLEM])


@contextlib.contextmanager
def _noting(problems: list[str], way: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems.append(f"{way}: {error.strerror or error}")
    except Exception as error:  # the other ways must still be tried
        problems.append(f"{way}: {type(error).__name__}: {error}")


def _replace_file(path: Path, document: bytes) -> None:
    draft = path.with_name(f".{path.name}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)  # whatever the umask: the job is another user
            file.write(document)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _notice_document(notice: Notice) -> bytes:
    now_unix_ms = _now_unix_ms()
    deadline = notice.deadline_unix_ms
    return _json(
        {
            "kind": notice.kind.value,
            "deadline_unix_ms": deadline,
            "seconds_left": None if deadline is None else max(0, deadline - now_unix_ms) / 1000,
            "source": notice.source,
            "detail": notice.detail,
            "time_unix_ms": notice.time_unix_ms,
        }
    )


def _checkpoint_document(seconds_left: float | None, interval_s: float | None) -> bytes:
    return _json(
        {
            "kind": "checkpoint",
            "seconds_left": _finite(seconds_left),
            "interval_s": _finite(interval_s),
            "time_unix_ms": _now_unix_ms(),
        }
    )


def _finite(seconds: float | None) -> float | None:
    return max(0.0, seconds) if seconds is not None and math.isfinite(seconds) else None


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def _now_unix_ms() -> int:
    return time.time_ns() // 1_000_000
