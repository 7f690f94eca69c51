import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from spotwright.adapters.webhook.posting import Webhook
from spotwright.domain.job_run import NewEvent
from tests.usecases.example_job_run import START

EVENT = NewEvent(time=START, kind="replanned", text="g5.xlarge*2", facts={"plan_id": "p-1"})


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


@pytest.mark.parametrize("failures", [0, 2])
def test_an_event_is_posted_once_it_is_taken(failures: int) -> None:
    with listening(failures=failures) as (url, taken):
        webhook = Webhook(url, sleep=lambda _: None)
        webhook.tell("job-1", EVENT)
        webhook.close()

    assert taken == [
        {
            "job_id": "job-1",
            "time": START.isoformat(),
            "kind": "replanned",
            "text": "g5.xlarge*2",
            "facts": {"plan_id": "p-1"},
        }
    ]


def test_an_address_that_never_answers_is_told_in_the_log_and_keeps_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    webhook = Webhook("http://127.0.0.1:1/", sleep=lambda _: None)
    webhook.tell("job-1", EVENT)
    webhook.close()

    assert "the webhook did not take an event" in caplog.text
