"""Who may talk to a parameter server: peers with a certificate of the project's authority.

In the clear it listens and connects on loopback only, as the daemon does. The certificates are
those that `spotwright certs` makes: a server shows server.crt, a worker its client.crt or, on a
rented host, the certificate of the agent there.
"""

import socket
import ssl
import time
from pathlib import Path

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, OutsideWorldError, PeerRefusedError
from spotwright.train.wire import MAGIC, ConnectionLostError, Wire

_IDENTITY = "spiffe://spotwright/"
_WORKER_KINDS = ("client/", "agent/")
_HANDSHAKE_S = 10.0
_DROPPED_AT_ONCE_BYTES = 64 * 1024
_UNANSWERED_MS = 30_000  # a cut link is noticed after this, by whoever sends
_IDLE_S, _PROBE_S, _PROBES = 10, 5, 4  # and by whoever waits


def check_reachable(address: Address, tls_dir: Path | None) -> None:
    """Raise BadInputError where gradients would cross a network in the clear."""
    if tls_dir is None and not address.is_loopback:
        raise BadInputError(
            f"{address} is not of this machine alone, and there anybody could read and change the "
            "model: give --tls-dir with certificates of `spotwright certs init`, or use 127.0.0.1"
        )


def listen(address: Address) -> socket.socket:
    """Return a socket that listens."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise OutsideWorldError(f"cannot listen on {address}: {error.strerror}") from error
    return listener


def server_context(tls_dir: Path) -> ssl.SSLContext:
    """Return how a server proves who it is, and has its peers do so."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, tls_dir, name="server")
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # nobody resumes
    return context


def accept(connection: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    """Return an accepted connection, ready for frames, when the peer has proved who it is.

    Raises:
        PeerRefusedError: its certificate is foreign, or not that of a worker.
    """
    _tune(connection)
    if context is None:
        return connection
    connection.settimeout(_HANDSHAKE_S)
    try:
        if connection.recv(len(MAGIC), socket.MSG_PEEK) == MAGIC:
            _tell_to_use_tls(connection)
        secured = context.wrap_socket(connection, server_side=True)
    except OSError as error:
        raise PeerRefusedError(f"no TLS with the peer: {_told(error)}") from error
    if not _is_worker(secured):
        secured.close()
        raise PeerRefusedError("the peer's certificate is neither of a client nor of an agent")
    secured.settimeout(None)
    return secured


def connect(address: Address, *, tls_dir: Path | None, timeout_s: float) -> socket.socket:
    """Return a connection to a server.

    Raises:
        PeerRefusedError: it does not prove that it is one of ours.
        ConnectionLostError: nobody answers there.
    """
    check_reachable(address, tls_dir)
    context = None if tls_dir is None else _worker_context(tls_dir)
    try:
        connection = socket.create_connection((address.host, address.port), timeout=timeout_s)
    except OSError as error:
        raise ConnectionLostError(f"nobody answers at {address}: {error}") from error
    _tune(connection)
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname=address.host)
    except (ssl.SSLEOFError, ConnectionError, TimeoutError) as error:
        connection.close()
        raise ConnectionLostError(f"{address} ended the connection: {error}") from error
    except OSError as error:
        connection.close()
        raise PeerRefusedError(f"{address} is refused: {_told(error)}") from error
    connection.settimeout(None)
    return connection


def _tell_to_use_tls(connection: socket.socket) -> None:
    """Say in the clear, to a peer that spoke so, what it lacks; it would wait for an answer."""
    error = PeerRefusedError(
        "this server talks to peers with a certificate only: give --tls-dir with one of its "
        "authority, made by `spotwright certs`"
    )
    Wire(connection).refuse(error.reason, str(error))
    connection.shutdown(socket.SHUT_WR)
    end_s = time.monotonic() + _HANDSHAKE_S
    while time.monotonic() < end_s and connection.recv(_DROPPED_AT_ONCE_BYTES):
        pass  # what is closed with bytes unread takes back what was said
    raise error


def _worker_context(tls_dir: Path) -> ssl.SSLContext:
    agents = sorted(path.stem for path in (tls_dir / "agents").glob("*.crt"))
    if not (tls_dir / "client.crt").exists() and len(agents) == 1:
        return _context(ssl.PROTOCOL_TLS_CLIENT, tls_dir, name=f"agents/{agents[0]}")
    return _context(ssl.PROTOCOL_TLS_CLIENT, tls_dir, name="client")


def _context(protocol: int, tls_dir: Path, *, name: str) -> ssl.SSLContext:
    files = [tls_dir / f"{name}.crt", tls_dir / f"{name}.key", tls_dir / "ca.crt"]
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    for path in files:
        if not path.is_file():
            raise BadInputError(f"{path} is missing; `spotwright certs` makes it")
    try:
        context.load_cert_chain(files[0], files[1], password=lambda: b"")
        context.load_verify_locations(files[2])
    except OSError as error:
        raise BadInputError(
            f"{files[0]}, its key or ca.crt cannot be used: {_told(error)}; make them anew with "
            "`spotwright certs`"
        ) from error
    return context


def _is_worker(secured: ssl.SSLSocket) -> bool:
    names = (secured.getpeercert() or {}).get("subjectAltName", ())
    wanted = tuple(_IDENTITY + kind for kind in _WORKER_KINDS)
    return any(pair[0] == "URI" and str(pair[1]).startswith(wanted) for pair in names)


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, _IDLE_S),
        (socket.TCP_KEEPINTVL, _PROBE_S),
        (socket.TCP_KEEPCNT, _PROBES),
        (socket.TCP_USER_TIMEOUT, _UNANSWERED_MS),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _told(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return error.strerror or str(error)
