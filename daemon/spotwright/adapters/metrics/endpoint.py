"""`/metrics` over HTTP, on threads of its own."""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import CONTENT_TYPE_LATEST

from spotwright.domain.errors import OutsideWorldError

_log = logging.getLogger(__name__)
_PATH = "/metrics"
_CLIENT_TIMEOUT_S = 5.0  # one who neither asks nor reads does not hold a thread for longer


class MetricsEndpoint:
    """Serves what `render` returns, from when it is made until it is closed."""

    def __init__(self, host: str, port: int, render: Callable[[], bytes]) -> None:
        """Listen and begin to answer.

        Raises:
            OutsideWorldError: the address cannot be had.
        """
        try:
            self._server = _Server(host, port, render)
        except OSError as error:
            raise OutsideWorldError(
                f"cannot serve metrics on {host}:{port}: {error.strerror or error}; "
                "name another address with --metrics HOST:PORT, or --metrics off"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="metrics"
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Answer those who asked already, then stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for answers that are on their way
    allow_reuse_address = True  # a restart need not wait for connections of the last run to fade

    def __init__(self, host: str, port: int, render: Callable[[], bytes]) -> None:
        self.render = render
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server what this host is called, as HTTPServer does."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, *_: object) -> None:
        """Make no noise: a client that went away is no fault of the daemon's."""
        _log.debug("a scrape ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "spotwright"
    sys_version = ""
    timeout = _CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        """Answer with every metric."""
        self._answer()

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write no line for each scrape."""

    def _answer(self) -> None:
        if self.path.partition("?")[0] != _PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"there is only {_PATH}")
            return
        try:
            text = self.server.render()
        except Exception:
            _log.exception("the metrics cannot be rendered")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "the daemon's log says why")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
