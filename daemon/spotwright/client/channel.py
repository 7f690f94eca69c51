"""How the daemon is reached: by TLS, or in the clear on this same machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError

_MAX_RESPONSE_BYTES = 64 * 1024 * 1024  # every offer of a large catalog
_MAX_COMPLAINT_BYTES = 512 * 1024  # a job file can be wrong in every line
_OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", _MAX_RESPONSE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),  # usually two minutes, long after a restart
    ("grpc.max_metadata_size", _MAX_COMPLAINT_BYTES),
    ("grpc.absolute_max_metadata_size", 2 * _MAX_COMPLAINT_BYTES),
)


def open_channel(address: Address, *, tls: Path | None = None, token: str | None = None) -> Any:
    """Open a channel for calls that block.

    Args:
        address: where the daemon listens.
        tls: folder with ca.crt and, for who has a certificate, client.crt and client.key. None:
            in the clear, which only an address of this machine allows.
        token: who calls, where it is not said by a certificate; only over TLS.
    """
    return _opened(grpc.secure_channel, grpc.insecure_channel, address, tls=tls, token=token)


def open_aio_channel(address: Address, *, tls: Path | None = None, token: str | None = None) -> Any:
    """Open a channel for calls that are awaited, as `open_channel` does; in a running loop."""
    open_secure, open_insecure = grpc.aio.secure_channel, grpc.aio.insecure_channel
    return _opened(open_secure, open_insecure, address, tls=tls, token=token)


def _opened(
    open_secure: Callable[..., Any],
    open_insecure: Callable[..., Any],
    address: Address,
    *,
    tls: Path | None,
    token: str | None,
) -> Any:
    if tls is not None:
        credentials = _credentials(tls, token)
        return open_secure(str(address), credentials, options=_OPTIONS)
    if not address.is_loopback:
        raise BadInputError(
            f"{address} is another machine, which is reached by TLS only; name the folder of your "
            "certificates with --tls-dir"
        )
    if token is not None:
        raise BadInputError("a token is sent over TLS only; add --tls-dir, or leave the token out")
    return open_insecure(str(address), options=_OPTIONS)


def _credentials(folder: Path, token: str | None) -> Any:
    certificate, key = folder / "client.crt", folder / "client.key"
    mutual = certificate.exists() or key.exists()
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_content(folder / "ca.crt"),
        private_key=_content(key) if mutual else None,
        certificate_chain=_content(certificate) if mutual else None,
    )
    if token is None:
        return credentials
    caller = grpc.access_token_call_credentials(token)
    return grpc.composite_channel_credentials(credentials, caller)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInputError(
            f"cannot read {file} ({error.strerror}); a TLS folder holds ca.crt and, to call as the "
            "owner of a certificate, client.crt and client.key; `spotwright certs` makes them"
        ) from error
