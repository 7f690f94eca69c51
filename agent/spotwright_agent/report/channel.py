"""How the daemon is reached: by TLS, or in the clear on this same machine."""

import socket
from ipaddress import ip_address
from typing import Any

import grpc

from spotwright_agent.settings import SettingsError
from spotwright_agent.tls_files import TlsFiles

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 1024 * 1024),
    ("grpc.max_send_message_length", 1024 * 1024),
    ("grpc.enable_retries", 0),
    # Each session has a channel of its own and waits by itself before the next.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


class ChannelFilesError(Exception):
    """The files for TLS cannot be read; the text says which."""


def check_address(address: str, *, tls: TlsFiles | None) -> None:
    """Raise SettingsError where an address would be reached in the clear from elsewhere."""
    if tls is None and not is_loopback(address):
        raise SettingsError(
            f"daemon is {address}, another machine, which is reached by TLS only; name the folder "
            "of the certificates with tls_dir"
        )


def is_loopback(address: str) -> bool:
    """Tell whether HOST:PORT is on this machine."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def open_channel(address: str, *, tls: TlsFiles | None) -> Any:
    """Open a channel, with the certificate as it is now.

    Raises:
        SettingsError: it would be in the clear to another machine.
        ChannelFilesError: a file cannot be read.
    """
    check_address(address, tls=tls)
    if tls is None:
        return grpc.insecure_channel(address, options=_OPTIONS)
    try:
        authority, certificate, key = (
            file.read_bytes() for file in (tls.authority, tls.certificate, tls.key)
        )
    except OSError as error:
        raise ChannelFilesError(f"{error.filename} cannot be read: {error.strerror}") from error
    credentials = grpc.ssl_channel_credentials(
        root_certificates=authority, private_key=key, certificate_chain=certificate
    )
    return grpc.secure_channel(address, credentials, options=_OPTIONS)


def reach_problem(address: str, *, tls: TlsFiles | None, timeout_s: float) -> str | None:
    """Return why the daemon cannot be reached, or that it does not take our certificate.

    Raises:
        SettingsError: the address would be reached in the clear from elsewhere.
    """
    host, _, port = address.rpartition(":")
    try:
        with open_channel(address, tls=tls) as channel:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            grpc.channel_ready_future(channel).result(timeout=timeout_s)
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    except grpc.FutureTimeoutError:
        return "takes the connection, but not ours: TLS on one side only, or certificates"
    except (ChannelFilesError, ValueError) as error:
        return str(error)
    return None
