"""A notice, or a request to save, as a file beside the agent's socket.

Files are for processes that the agent cannot answer: names of sockets that Linux chooses do not
reach into a container with a network of its own, a mounted folder does.
"""

import os

from spotwright_agent.training.warning import TrainingWarning, read_warning

_MAX_BYTES = 65_536


class NoticeFile:
    """What stands in the file now."""

    def __init__(self, socket_path: str, name: str) -> None:
        self._path = os.path.join(os.path.dirname(socket_path), name)
        self._version: tuple[int, int] | None = None
        self.warning: TrainingWarning | None = None

    def changed(self) -> bool:
        """Look again; True: another warning stands there, or none does any more."""
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            version = None
        else:
            version = (found.st_ino, found.st_mtime_ns)
        if version == self._version:
            return False
        self._version = version
        before, self.warning = self.warning, self._read() if version else None
        return before != self.warning

    def _read(self) -> TrainingWarning | None:
        try:
            with open(self._path, "rb") as file:
                return read_warning(file.read(_MAX_BYTES))
        except OSError:
            return None
