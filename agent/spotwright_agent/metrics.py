"""Figures of the agent itself, for Prometheus, at GET /metrics.

One thread answers one request at a time. It only reads figures that others keep anyway, so whoever
asks, however slowly, is waited for by nobody else. Not http.server: that bounds each read, but not
a request that comes one byte at a time.
"""

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from spotwright_agent.accepting import accepted

_PREFIX = "spotwright_agent_"
_REQUEST_MAX_BYTES = 8192
_REQUEST_S = 2.0  # from the first byte to the last of the answer


class _Family(NamedTuple):
    kind: str
    about: str
    label: str = ""


# Not named as what the daemon tells of its agents, which would be counted twice in a sum.
FAMILIES: Mapping[str, _Family] = {
    "sample_lag_seconds": _Family("gauge", "How much later than planned the latest sample was."),
    "spool_bytes": _Family("gauge", "Unacknowledged telemetry, on disk and in memory."),
    "batches_sent_total": _Family("counter", "Batches sent to the daemon."),
    "batches_acked_total": _Family("counter", "Batches that the daemon has stored."),
    "spool_dropped_samples_total": _Family("counter", "Samples lost since this process began."),
    "session_connected": _Family("gauge", "1: a session with the daemon is open."),
    "collector_fault": _Family("gauge", "1: a collector cannot read all it should.", "collector"),
    "notice_standing": _Family("gauge", "1: the cloud said that it takes the host away."),
    "certificate_days_left": _Family("gauge", "Days until the agent's certificate ends."),
    "steps_received_total": _Family("counter", "Training steps reported."),
    "steps_dropped_total": _Family("counter", "Training steps that could not be kept."),
    "process_cpu_seconds_total": _Family("counter", "Processor time of the agent."),
    "process_resident_memory_bytes": _Family("gauge", "Memory of the agent."),
}


def exposition(figures: Mapping[str, float]) -> str:
    """Return figures as Prometheus reads them.

    Args:
        figures: by name in FAMILIES; one with a label is `name:value_of_the_label`. What is not
            known is absent.

    Raises:
        ValueError: a name is not in FAMILIES, or lacks its label.
    """
    by_family: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for key, value in figures.items():
        name, labelled, label = key.partition(":")
        if name not in FAMILIES or bool(labelled) != bool(FAMILIES[name].label):
            raise ValueError(f"{key!r} is no figure of the agent")
        labels = f'{{{FAMILIES[name].label}="{_escaped(label)}"}}' if labelled else ""
        by_family[name].append(f"{_PREFIX}{name}{labels} {float(value)!r}\n")
    return "".join(_block(name, lines) for name, lines in by_family.items() if lines)


def _block(name: str, lines: list[str]) -> str:
    family, full = FAMILIES[name], _PREFIX + name
    return f"# HELP {full} {family.about}\n# TYPE {full} {family.kind}\n" + "".join(lines)


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def process_figures(statm: Path = Path("/proc/self/statm")) -> Mapping[str, float]:
    """Return what this process takes."""
    figures = {"process_cpu_seconds_total": time.process_time()}
    with contextlib.suppress(OSError):
        pages = int(statm.read_text(encoding="ascii").split()[1])
        figures["process_resident_memory_bytes"] = pages * os.sysconf("SC_PAGE_SIZE")
    return figures


class MetricsEndpoint:
    """Shows figures to whoever asks."""

    def __init__(self, address: str, *, figures: Callable[[], Mapping[str, float]]) -> None:
        """Listen.

        Args:
            address: HOST:PORT; port 0 is any that is free.
            figures: called for each request, in the thread of `run`; it must not wait for anything.

        Raises:
            OSError: the host is not known, or the port is taken.
        """
        host, _, port = address.rpartition(":")
        place = (host.strip("[]"), int(port))
        family, _, _, _, found = socket.getaddrinfo(*place, type=socket.SOCK_STREAM)[0]
        self._figures = figures
        self._listening = socket.create_server(found[:2], family=family, backlog=8)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.getsockname()[1])

    def run(self, stopping: threading.Event) -> None:
        """Answer until asked to stop."""
        for connection in accepted(self._listening, stopping, name="metrics"):
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def close(self) -> None:
        """Stop listening, where `run` was never called."""
        self._listening.close()

    def _answer(self, connection: socket.socket) -> None:
        end_s = time.monotonic() + _REQUEST_S
        head = b""
        for arrived in _arriving(connection, end_s):
            head += arrived
            if b"\r\n\r\n" in head or b"\n\n" in head or len(head) > _REQUEST_MAX_BYTES:
                break
        else:
            return  # it went away
        connection.settimeout(max(0.01, end_s - time.monotonic()))
        connection.sendall(self._reply(head))
        connection.shutdown(socket.SHUT_WR)
        # Closing while something is unread would take the answer back.
        unread_bytes = 0
        for arrived in _arriving(connection, end_s):
            unread_bytes += len(arrived)
            if unread_bytes > _REQUEST_MAX_BYTES:
                break

    def _reply(self, head: bytes) -> bytes:
        line = re.match(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r?\n", head)
        if len(head) > _REQUEST_MAX_BYTES:
            return _response("431 Request Header Fields Too Large", "too large\n")
        if line is None:
            return _response("400 Bad Request", "this is HTTP/1.1\n")
        if line[1] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n", allow=True)
        if line[2].partition(b"?")[0] != b"/metrics":
            return _response("404 Not Found", "only /metrics\n")
        try:
            text = exposition({**self._figures(), **process_figures()})
        except ValueError as error:
            return _response("500 Internal Server Error", f"{error}\n")
        return _response("200 OK", text, head_only=line[1] == b"HEAD")


def _arriving(connection: socket.socket, end_s: float) -> Iterator[bytes]:
    while (left_s := end_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        arrived = connection.recv(4096)
        if not arrived:
            return
        yield arrived


def _response(status: str, text: str, *, allow: bool = False, head_only: bool = False) -> bytes:
    body = text.encode()
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(["Allow: GET, HEAD"] if allow else []),
    ]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if head_only else head + body
