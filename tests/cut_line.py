"""A line to an HTTP server on loopback that can be cut, while the server goes on.

What has got through is answered. Otherwise a test would depend on which call was under way: what a
lost answer leaves behind, nobody but the server knows of. A test that is about just that names the
action whose answers are lost.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

_ANSWERS_WITHIN_S = 60.0
_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Line:
    """One end of it: a URL that leads to the server until it is cut."""

    def __init__(self, port: int, losing: str | None = None) -> None:
        self.has_lost = Event()
        handler = _handler(port, losing, self.has_lost)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def cut(self) -> None:
        """Refuse every connection from now on."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def line_to(port: int, *, losing: str | None = None) -> Iterator[Line]:
    """Lay a line to a server on loopback; whoever asks for `losing` waits in vain for an answer."""
    line = Line(port, losing)
    try:
        yield line
    finally:
        line.cut()


def _handler(port: int, losing: str | None, has_lost: Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):  # each request has a connection of its own
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = HTTPConnection("127.0.0.1", port, timeout=_ANSWERS_WITHIN_S)
            with closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
            if losing is not None and f"Action={losing}&".encode() in body:
                has_lost.set()
                self.connection.recv(1)  # until the other end gives up
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_ONE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    return Handler
