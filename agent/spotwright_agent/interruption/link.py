"""One kept connection to a metadata server, with an end to every wait and every answer.

http.client follows no redirect and knows no proxy, which is as it must be here. Its timeout is for
each read alone, so a server that sends a byte a second would hold it for hours; the socket below
counts all reads of a poll together.
"""

import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from spotwright_agent.interruption.source import MetadataError

LINK_LOCAL_URL = "http://169.254.169.254"  # all three clouds; a name would need a name server
_MAX_ANSWER_BYTES = 64 * 1024  # with its headers
_MIN_WAIT_S = 0.001  # 0 would mean a socket that does not wait at all


class Answer(NamedTuple):
    """What a server said, whole."""

    status: int
    text: str
    headers: HTTPMessage


class MetadataLink:
    """Asks a metadata server over one connection, which is made anew when it is lost."""

    def __init__(self, base_url: str, *, timeout_s: float = 1.0) -> None:
        self._base_url = base_url or LINK_LOCAL_URL
        try:
            parts = urlsplit(self._base_url)
            self._address = parts.hostname or "", parts.port or 80
        except ValueError as error:
            raise MetadataError(f"{base_url} is not the URL of a server: {error}") from error
        if parts.scheme != "http" or not parts.hostname:
            raise MetadataError(f"{base_url} must be as http://HOST:PORT")
        self._prefix = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._end_s = 0.0
        self._connection: _Connection | None = None

    def begin(self) -> None:
        """Start the clock: everything asked until the next call shares one time limit."""
        self._end_s = time.monotonic() + self._timeout_s

    def ask(self, path: str, *, headers: Mapping[str, str], method: str = "GET") -> Answer:
        """Return what the server says.

        Raises:
            MetadataError: there is no whole answer within the time limit.
        """
        try:
            return self._ask(method, self._prefix + path, headers)
        except TimeoutError as error:
            raise MetadataError(
                f"{self._base_url} does not answer within {self._timeout_s:g} s"
            ) from error
        except (OSError, HTTPException, UnicodeError) as error:
            said = f"{type(error).__name__}: {error}"[:100]
            raise MetadataError(f"{self._base_url} cannot be asked: {said}") from error

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        if self._connection is not None:
            try:
                return self._exchange(self._connection, method, path, headers)
            except ConnectionError:
                pass  # servers end idle connections; a new one shows whether it was that
        self._connection = _Connection(*self._address)
        return self._exchange(self._connection, method, path, headers)

    def _exchange(
        self, connection: "_Connection", method: str, path: str, headers: Mapping[str, str]
    ) -> Answer:
        whole = False
        try:
            connection.limit(self._end_s)
            connection.request(method, path, headers=dict(headers))
            with connection.getresponse() as response:
                text = _text(response)
                whole = not response.will_close
                return Answer(response.status, text, response.headers)
        finally:
            if not whole:  # what is left of an answer must not be taken for the next
                self.close()


def _text(response: HTTPResponse) -> str:
    body = response.read(_MAX_ANSWER_BYTES)  # never what Content-Length says: it is allocated first
    if not response.isclosed():
        raise HTTPException("the answer ends early, or never")
    return body.decode("utf-8", "replace")


class _Connection(HTTPConnection):
    """A connection whose waits end at one time."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._end_s = 0.0

    def limit(self, end_s: float) -> None:
        """Let nothing wait past this time, nor an answer be larger than it may."""
        self._end_s = end_s
        if isinstance(self.sock, _LimitedSocket):
            self.sock.limit(end_s)

    def connect(self) -> None:
        """Connect within the time."""
        family, kind, _, _, address = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        )[0]
        self.sock = limited = _LimitedSocket(family, kind)
        limited.limit(self._end_s)
        limited.connect(address)
        limited.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _LimitedSocket(socket.socket):
    """A socket that reads until a time and so many bytes, however they are split."""

    _end_s = 0.0
    _left_bytes = 0

    def limit(self, end_s: float) -> None:
        """Start anew, for one answer."""
        self._end_s, self._left_bytes = end_s, _MAX_ANSWER_BYTES
        self._wait_no_longer()

    def recv_into(self, *args: Any, **options: Any) -> int:
        """Read what has come."""
        self._wait_no_longer()
        count = super().recv_into(*args, **options)
        self._left_bytes -= count
        if self._left_bytes < 0:
            raise HTTPException(f"the answer is larger than {_MAX_ANSWER_BYTES} bytes")
        return count

    def _wait_no_longer(self) -> None:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self.settimeout(max(left_s, _MIN_WAIT_S))
