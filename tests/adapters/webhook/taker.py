"""An address that takes what is posted to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def listening(*, failures: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Take what is posted, after so many refusals."""
    taken: list[dict[str, Any]] = []
    left = [failures]

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            left[0] -= 1
            self.send_response(503 if left[0] >= 0 else 200)
            self.end_headers()
            if left[0] < 0:
                taken.append(json.loads(body))

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Taker)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
