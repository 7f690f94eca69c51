"""Connections as they come in, until the agent stops."""

import logging
import socket
import threading
from collections.abc import Iterator

_log = logging.getLogger(__name__)
_LOOK_S = 0.5  # so soon is a wish to stop noticed
_PAUSE_S = 1.0


def accepted(
    listening: socket.socket, stopping: threading.Event, *, name: str
) -> Iterator[socket.socket]:
    """Return connections one by one, and close the listening socket at the end."""
    listening.settimeout(_LOOK_S)
    with listening:
        while not stopping.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            except OSError as error:  # no more files, for example: others need the time
                _log.warning("%s: cannot accept connections: %s", name, error.strerror)
                stopping.wait(_PAUSE_S)
                continue
            yield connection
