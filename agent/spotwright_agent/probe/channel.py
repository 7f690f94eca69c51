"""The control connection: lines of JSON, over TLS in which both ends prove that they are agents.

Certificates of agents are made for clients only, and a TLS client accepts no such certificate from
its server. So TLS runs twice, one inside the other: outside the listener is the server and checks
who asks, inside the one who asks is the server and checks who listens. What passes both is read by
nobody else, and an agent in between could only be one that the authority vouches for.
"""

import json
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

from spotwright_agent.probe.errors import ProbeError
from spotwright_agent.probe.patience import Patience
from spotwright_agent.tls_files import TlsFiles

_IDENTITY = "spiffe://spotwright/agent/"
_LINE_MAX_BYTES = 512
_CHUNK_BYTES = 16_384
_MOST = 1e9  # Mbit/s or seconds; JSON has integers that no float can hold


class Stream(Protocol):
    """Bytes both ways."""

    def send(self, data: bytes, patience: Patience) -> None:
        """Send all of it."""

    def receive(self, patience: Patience) -> bytes:
        """Return what arrives next; empty when the other end closed."""


class PlainStream:
    """A TCP connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: bytes, patience: Patience) -> None:
        """Send all of it."""
        patience.send(self._connection, data)

    def receive(self, patience: Patience) -> bytes:
        """Return what arrives next; empty when the other end closed."""
        return patience.receive(self._connection, _CHUNK_BYTES)


class TlsStream:
    """TLS over another stream; a server here requires the certificate of an agent."""

    def __init__(self, below: Stream, *, tls: TlsFiles, is_server: bool) -> None:
        self._below = below
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = _server_context(tls) if is_server else _client_context(tls)
        self._tls = context.wrap_bio(self._in, self._out, server_side=is_server)

    def handshake(self, patience: Patience) -> None:
        """Agree on keys; a server also learns who the other end is."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._turn(patience)
                continue
            except ssl.SSLError:
                self._flush(patience)  # the other end learns why
                raise
            break
        self._flush(patience)
        if self._tls.server_side:
            _require_agent(self._tls.getpeercert() or {})

    def send(self, data: bytes, patience: Patience) -> None:
        """Send all of it."""
        self._tls.write(data)
        self._flush(patience)

    def receive(self, patience: Patience) -> bytes:
        """Return what arrives next; empty when the other end closed."""
        while True:
            try:
                return self._tls.read(_CHUNK_BYTES)
            except ssl.SSLWantReadError:
                self._turn(patience)
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return b""

    def _turn(self, patience: Patience) -> None:
        self._flush(patience)
        arrived = self._below.receive(patience)
        if arrived:
            self._in.write(arrived)
        else:
            self._in.write_eof()

    def _flush(self, patience: Patience) -> None:
        if self._out.pending:
            self._below.send(self._out.read(), patience)


def authenticated(
    connection: socket.socket, *, tls: TlsFiles | None, listens: bool, patience: Patience
) -> Stream:
    """Return the control stream over a connection, when both ends have proved who they are.

    Raises:
        ProbeError: the other end is no agent of the same authority.
        OSError: the connection broke.
    """
    plain = PlainStream(connection)
    if tls is None:
        return plain
    try:
        outer = TlsStream(plain, tls=tls, is_server=listens)
        outer.handshake(patience)
        inner = TlsStream(outer, tls=tls, is_server=not listens)
        inner.handshake(patience)
    except ssl.SSLError as error:
        raise ProbeError(f"no TLS with the other host: {_told(error)}") from error
    return inner


class Channel:
    """Messages over a stream, one line of JSON each."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._arrived = b""

    def send(self, message: Mapping[str, Any], patience: Patience) -> None:
        """Send a message."""
        self._stream.send(json.dumps(message).encode() + b"\n", patience)

    def receive(self, patience: Patience) -> dict[str, Any]:
        """Return the next message.

        Raises:
            ProbeError: what arrives is no message, says a problem, or does not come in time.
        """
        while b"\n" not in self._arrived:
            if len(self._arrived) > _LINE_MAX_BYTES:
                raise ProbeError("the other host does not speak this protocol")
            arrived = self._stream.receive(patience)
            if not arrived:
                raise ProbeError("the other host ended the control connection")
            self._arrived += arrived
        line, _, self._arrived = self._arrived.partition(b"\n")
        return _message(line)


def number(message: Mapping[str, Any], name: str) -> float:
    """Return a figure of a message; it is not negative and no larger than any can be."""
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ProbeError(f"the other host told no usable {name}")
    return float(value)


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line) if len(line) <= _LINE_MAX_BYTES else None
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise ProbeError("the other host does not speak this protocol")
    if problem := message.get("problem"):
        # Shown to people: no control characters of somebody else on their terminal.
        shown = "".join(c for c in str(problem)[:200] if c.isprintable())
        raise ProbeError(f"the other host says: {shown}")
    return message


def _server_context(tls: TlsFiles) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_SERVER, tls)
    context.num_tickets = 0  # nobody resumes
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cafile=tls.authority)
    except OSError as error:
        raise ProbeError(f"{tls.authority} cannot be used: {_told(error)}") from error
    return context


def _client_context(tls: TlsFiles) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_CLIENT, tls)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the other of the two layers checks
    return context


def _context(protocol: int, tls: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        raise ProbeError(f"{tls.certificate} and its key cannot be used: {_told(error)}") from error
    return context


def _require_agent(certificate: Mapping[str, Any]) -> None:
    names = certificate.get("subjectAltName", ())
    if not any(kind == "URI" and name.startswith(_IDENTITY) for kind, name in names):
        raise ProbeError("the other host's certificate is not that of an agent")


def _told(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return error.strerror or str(error)
