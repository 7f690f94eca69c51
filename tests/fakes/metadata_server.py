"""The metadata servers of three clouds, on loopback: answers as theirs, faults as a test wishes."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.ports import stable_port

_FACTS = {
    "aws": {
        "instance-id": "i-0123456789abcdef0",
        "instance-type": "g5.12xlarge",
        "placement/availability-zone-id": "use1-az4",
        "instance-life-cycle": "spot",
    },
    "gcp": {
        "id": "4620343019386465792",
        "machine-type": "projects/1234567/machineTypes/a2-highgpu-4g",
        "zone": "projects/1234567/zones/us-central1-f",
        "scheduling/preemptible": "TRUE",
    },
    "azure": {
        "name": "trainer_3",
        "vmId": "02aab8a4-74ef-476e-8182-f6d2ba4166a6",
        "vmSize": "Standard_NC24ads_A100_v4",
        "location": "westeurope",
        "zone": "2",
        "priority": "Spot",
    },
}


class MetadataServer:
    """One cloud's server. Change what it says, and how badly, at any time and from any thread."""

    def __init__(self, cloud: str) -> None:
        self.cloud = cloud
        self.facts = dict(_FACTS[cloud])
        self.delay_s = 0.0  # before each answer
        self.drip_s = 0.0  # between the bytes of an answer
        self.garbage: bytes | None = None  # in place of each body that is not a token
        self.status: int | None = None  # in place of each status
        self.failures_left = 0  # so many answers more have status 503
        self.close_mid_answer = False
        self.close_after_answer = False  # without saying so, as an idle connection is closed
        self.chunked = False
        self.paths: list[str] = []  # everything that was asked, in order
        self.tokens_given = 0
        self.connection_count = 0
        self._documents: dict[str, str] = {}
        self._tokens: dict[str, float] = {}
        self._port = stable_port()
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def interrupt(
        self, *, seconds: float = 120, action: str = "terminate", now_s: float | None = None
    ) -> int:
        """Say that the host goes, and return when in milliseconds since 1970; GCP says no time."""
        deadline_s = int((time.time() if now_s is None else now_s) + seconds)  # as clouds tell it
        if self.cloud == "aws":
            gone = datetime.fromtimestamp(deadline_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._documents["spot/instance-action"] = json.dumps({"action": action, "time": gone})
        elif self.cloud == "gcp":
            self._documents["preempted"] = "TRUE"
        else:
            self.schedule(not_before=formatdate(deadline_s, usegmt=True))
        return deadline_s * 1000

    def rebalance(self, *, seconds_ago: float = 0, now_s: float | None = None) -> None:
        """Say as AWS does that the host may go."""
        told_s = (time.time() if now_s is None else now_s) - seconds_ago
        said = datetime.fromtimestamp(int(told_s), UTC)
        self._documents["events/recommendations/rebalance"] = json.dumps(
            {"noticeTime": said.strftime("%Y-%m-%dT%H:%M:%SZ")}
        )

    def maintain(self, event: str = "TERMINATE_ON_HOST_MAINTENANCE") -> None:
        """Say as GCP does that the host under this one is repaired."""
        self._documents["maintenance-event"] = event

    def schedule(self, **changes: Any) -> None:
        """Say as Azure does that something happens; an eviction of this host unless changed."""
        event = {
            "event_id": "602d9444-d2cd-49c7-8624-8643e7171297",
            "event_type": "Preempt",
            "resource_type": "VirtualMachine",
            "resources": [self.facts["name"]],
            "event_status": "Scheduled",
            "not_before": formatdate(int(time.time()) + 30, usegmt=True),
            "description": "",
            "event_source": "Platform",
            "duration_in_seconds": -1,
        } | changes
        camel = {key.title().replace("_", ""): value for key, value in event.items()}
        self._documents["scheduledevents"] = json.dumps(
            {"DocumentIncarnation": 2, "Events": [camel]}
        )

    def say(self, path: str, document: str) -> None:
        """Answer one path with this text, whatever it is."""
        self._documents[path] = document

    def document(self, path: str) -> str:
        """Return what is said at one path."""
        return self._documents[path]

    def clear(self) -> None:
        """Take back all that was said."""
        self._documents.clear()

    def expire_tokens(self) -> None:
        self._tokens.clear()

    def start(self) -> None:
        """Listen; after `stop`, on the same port."""
        self._server = _Server(self, self._port)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Be absent: refuse connections and end those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.end_connections()

    def answer(self, method: str, path: str, headers: Any) -> tuple[int, bytes]:
        """Return what the cloud would answer."""
        self.paths.append(path)
        status, body = getattr(self, f"_{self.cloud}")(method, path, headers)
        is_token = path == "/latest/api/token"
        if self.garbage is not None and not is_token:
            status, body = 200, self.garbage
        if self.failures_left > 0:
            self.failures_left -= 1
            return 503, b""
        return (self.status or status), body

    def _aws(self, method: str, path: str, headers: Any) -> tuple[int, bytes]:
        if path == "/latest/api/token":
            return self._token(method, headers)
        if self._tokens.get(headers.get("X-aws-ec2-metadata-token", ""), 0.0) < time.monotonic():
            return 401, b"Unauthorized"
        return self._found(path, "/latest/meta-data/", {})

    def _token(self, method: str, headers: Any) -> tuple[int, bytes]:
        ttl = headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if method != "PUT":
            return 405, b""
        if not ttl.isdigit() or not 1 <= int(ttl) <= 21_600 or headers.get("X-Forwarded-For"):
            return 400, b""
        self.tokens_given += 1
        token = f"token-{self.tokens_given}=="
        self._tokens[token] = time.monotonic() + int(ttl)
        return 200, token.encode()

    def _gcp(self, method: str, path: str, headers: Any) -> tuple[int, bytes]:
        if headers.get("Metadata-Flavor") != "Google":
            return 403, b"missing required header"
        quiet = {"preempted": "FALSE", "maintenance-event": "NONE"}
        return self._found(path, "/computeMetadata/v1/instance/", quiet)

    def _azure(self, method: str, path: str, headers: Any) -> tuple[int, bytes]:
        if headers.get("Metadata") != "true":
            return 400, b'{"error": "Bad request. Required metadata header not specified"}'
        if path == "/metadata/instance?api-version=2021-02-01":
            return 200, json.dumps({"compute": self.facts, "network": {}}).encode()
        if path == "/metadata/scheduledevents?api-version=2020-07-01":
            quiet = '{"DocumentIncarnation": 1, "Events": []}'
            return 200, self._documents.get("scheduledevents", quiet).encode()
        return 404, b"{}"

    def _found(self, path: str, prefix: str, quiet: dict[str, str]) -> tuple[int, bytes]:
        name = path.removeprefix(prefix)
        document = (quiet | self.facts | self._documents).get(name)
        if not path.startswith(prefix) or document is None:
            return 404, b"<html>404 - Not Found</html>"
        return 200, document.encode()


@contextmanager
def metadata_server(cloud: str) -> Iterator[MetadataServer]:
    """Run the metadata server of aws, gcp or azure until the block ends."""
    server = MetadataServer(cloud)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, said: MetadataServer, port: int) -> None:
        self.said = said
        self._open: set[Any] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.said.connection_count += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that gave up is what a test wanted."""

    def end_connections(self) -> None:
        for request in list(self._open):
            self.shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        said = self.server.said
        if said.delay_s:
            time.sleep(said.delay_s)
        status, body = said.answer(self.command, self.path, self.headers)
        self.send_response(status)
        self._end_headers(body)
        if said.close_mid_answer:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self._write(
            f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n" if said.chunked else body
        )
        self.close_connection = self.close_connection or said.close_after_answer

    do_PUT = do_GET  # noqa: N815

    def _end_headers(self, body: bytes) -> None:
        said = self.server.said
        self.send_header("Content-Type", "text/plain")
        if said.cloud == "gcp":
            self.send_header("Metadata-Flavor", "Google")
        if said.status is not None and 300 <= said.status < 400:
            self.send_header("Location", f"{said.url}/elsewhere")
        if said.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()

    def _write(self, body: bytes) -> None:
        if not self.server.said.drip_s:
            self.wfile.write(body)
            return
        for byte in body:
            self.wfile.write(bytes([byte]))
            time.sleep(self.server.said.drip_s)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep the tests' output short."""
