"""Events posted to an address, one after the other, by a thread that nobody waits for."""

import json
import logging
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress

from spotwright.domain.job_run import NewEvent

_log = logging.getLogger(__name__)

_MOST_WAITING = 1000
_TIMEOUT_S = 5.0
_PAUSES_S = (0.5, 2.0, 8.0)  # before each further try


class Webhook:
    """Posts events as JSON; what cannot be posted is logged and left out."""

    def __init__(self, url: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url, self._sleep = url, sleep
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._post_all, name="webhook", daemon=True)
        self._thread.start()

    def tell(self, job_id: str, event: NewEvent) -> None:
        """Take an event of a job; never waits."""
        document = {
            "job_id": job_id,
            "time": event.time.isoformat(),
            "kind": event.kind,
            "text": event.text,
            "facts": dict(event.facts),
        }
        try:
            self._waiting.put_nowait(json.dumps(document).encode())
        except queue.Full:
            _log.warning("the webhook is too slow: %s of job %s is left out", event.kind, job_id)

    def close(self, *, wait_s: float = _TIMEOUT_S) -> None:
        """Post what waits, for a while."""
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(wait_s)

    def _post_all(self) -> None:
        while (document := self._waiting.get()) is not None:
            self._post(document)

    def _post(self, document: bytes) -> None:
        problem: Exception | None = None
        for pause_s in (0.0, *_PAUSES_S):
            self._sleep(pause_s)
            try:
                self._post_once(document)
            except (OSError, ValueError) as error:
                problem = error
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
            else:
                return
        _log.warning("the webhook did not take an event: %s", problem)

    def _post_once(self, document: bytes) -> None:
        request = urllib.request.Request(
            self._url, data=document, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
            response.read()
