"""Small files of procfs and sysfs that are read every second, kept open."""

import os
from pathlib import Path

_MOST_BYTES = 16_384


class KernelFile:
    """A file that the kernel writes anew at each read; opened at the first."""

    def __init__(self, path: Path, *, most_bytes: int = _MOST_BYTES) -> None:
        self._path, self._most_bytes = str(path), most_bytes
        self._descriptor = -1

    def read(self) -> bytes:
        """Return its text; an OSError closes it, so that the next call opens it anew."""
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._descriptor, self._most_bytes, 0)
        except OSError:
            self.close()
            raise

    def read_count(self, *, column: int = 0) -> int:
        """Return the number in it, or one of them."""
        return int(self.read().split()[column])

    def close(self) -> None:
        """Close it, if it is open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class KernelFiles:
    """Files of devices that come and go, by name; those that went are closed."""

    def __init__(self) -> None:
        self._files: dict[str, KernelFile] = {}

    def keep(self, paths: dict[str, Path]) -> None:
        """Make these the files."""
        for name in self._files.keys() - paths.keys():
            self._files.pop(name).close()
        for name in paths.keys() - self._files.keys():
            self._files[name] = KernelFile(paths[name])

    def counts(self, *, column: int = 0) -> dict[str, int]:
        """Return the number in each; those that cannot be read are left out."""
        found = {}
        for name, file in self._files.items():
            try:
                found[name] = file.read_count(column=column)
            except (OSError, ValueError, IndexError):
                file.close()  # the device went away
        return found
