"""The server end of a connection: certificates that are read anew when they change, and limits."""

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from spotwright.domain.errors import BadInputError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What one connection may ask for."""

    max_message_bytes: int = 2 * 2**20
    max_metadata_bytes: int = 16 * 2**10
    max_streams_per_connection: int = 1000  # more wait at the client, or are refused there
    keepalive_s: float = 60.0  # a peer that is gone without a word is noticed after both
    keepalive_timeout_s: float = 20.0
    min_ping_interval_s: float = 10.0  # of clients
    max_ping_strikes: int = 3  # pings sooner than that, before the connection is ended
    # A certificate is checked when a connection opens, so no connection lasts for ever: 90 % to
    # 110 % of the age, as gRPC draws it, and what is open then has the grace to end. Agents come
    # back spread over 12 minutes and send again what was not acknowledged; no call that answers
    # once is cut unless it takes longer than the grace.
    connection_age_s: float = 3600.0
    connection_grace_s: float = 300.0


class CertificateSource(Protocol):
    """Where the server's certificate comes from."""

    def stamp(self) -> Hashable:
        """Return something that differs once there are new files."""

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Return key, certificate and authority as PEM; BadInputError where they are of no use."""


def server_credentials(source: CertificateSource) -> grpc.ServerCredentials:
    """Return credentials for one port: every client shows a certificate of the authority.

    Files that change are used from the next connection on; those that are open stay open.

    Raises:
        BadInputError: there is nothing usable to start with.
    """
    certificates = _ChangingCertificates(source)
    return grpc.dynamic_ssl_server_credentials(
        certificates.first, certificates.changed, require_client_authentication=True
    )


def server_options(limits: ServerLimits) -> Sequence[tuple[str, Any]]:
    """Return the limits in gRPC's words."""
    return (
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        ("grpc.max_metadata_size", limits.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_metadata_bytes),
        ("grpc.max_concurrent_streams", limits.max_streams_per_connection),
        ("grpc.keepalive_time_ms", _ms(limits.keepalive_s)),
        ("grpc.keepalive_timeout_ms", _ms(limits.keepalive_timeout_s)),
        ("grpc.http2.ping_timeout_ms", _ms(limits.keepalive_timeout_s)),  # else never under 60 s
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(limits.min_ping_interval_s)),
        ("grpc.http2.max_ping_strikes", limits.max_ping_strikes),
        ("grpc.max_connection_age_ms", _ms(limits.connection_age_s)),
        ("grpc.max_connection_age_grace_ms", _ms(limits.connection_grace_s)),
    )


class _ChangingCertificates:
    """Tells gRPC about new files before each handshake, from a thread of gRPC's own."""

    def __init__(self, source: CertificateSource) -> None:
        self._source = source
        self._stamp = source.stamp()  # taken first: files that change meanwhile are read again
        self.first = _configuration(source)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return new certificates, or None where the old ones stay in use."""
        stamp = self._source.stamp()
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            configuration = _configuration(self._source)
        except BadInputError as error:
            _log.error(
                "new certificates cannot be used, the old ones stay", extra={"problem": str(error)}
            )
            return None
        _log.info("new certificates are in use")
        return configuration


def _configuration(source: CertificateSource) -> grpc.ServerCertificateConfiguration:
    key, certificate, authority = source.read()
    return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
