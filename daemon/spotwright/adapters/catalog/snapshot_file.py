"""Snapshots on disk: the bundled ones, and the refreshed one that takes their place."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from spotwright.adapters.catalog import snapshot_format
from spotwright.domain.catalog import Snapshot
from spotwright.domain.errors import CatalogFileError, OutsideWorldError
from spotwright.domain.hardware import Cloud

_BUNDLED = Path(__file__).parent / "data"
_NEW_FILE_MODE = 0o644  # a temporary file starts as 0o600, which would break shared installs


def bundled_path(cloud: Cloud) -> Path:
    """Return where the snapshot that ships with the program is."""
    return _BUNDLED / f"{cloud}.json"


def load_snapshot(path: Path, *, cloud: Cloud | None = None) -> Snapshot:
    """Read one snapshot file, of a given cloud where it matters.

    Raises:
        CatalogFileError: the file is missing, unreadable, damaged, from a newer version or of
            another cloud.
    """
    snapshot = _decoded(path)
    if cloud is not None and snapshot.cloud is not cloud:
        problem = (
            f"describes {snapshot.cloud}, not {cloud}: give a catalog of {cloud}, or ask for "
            f"{snapshot.cloud} with --cloud or in the job's limits.cloud"
        )
        raise CatalogFileError(problem, path=str(path))
    return snapshot


def _decoded(path: Path) -> Snapshot:
    try:
        return snapshot_format.decode(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        problem = "no such file"
        raise CatalogFileError(problem, path=str(path)) from missing
    except OSError as error:
        problem = f"cannot be read ({error.strerror}); check its permissions"
        raise CatalogFileError(problem, path=str(path)) from error
    except snapshot_format.NewerSchemaError as newer:
        problem = f"written by a newer Spotwright ({newer}): upgrade, or {_way_out(path)}"
        raise CatalogFileError(problem, path=str(path)) from newer
    except (ValueError, OverflowError, RecursionError) as damage:
        problem = f"not a usable snapshot ({damage}); {_way_out(path)}"
        raise CatalogFileError(problem, path=str(path)) from damage


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Replace a snapshot file in one step; on failure the old one is left untouched.

    Raises:
        OutsideWorldError: the folder or the file cannot be written.
    """
    text = snapshot_format.encode(snapshot)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise OutsideWorldError(
            f"cannot write catalog {path} ({error.strerror}); the previous one is kept"
        ) from error


class FileSnapshotStore:
    """One cloud's last good snapshot: the refreshed file if there is one, else the bundled one."""

    def __init__(self, cloud: Cloud, *, refreshed: Path) -> None:
        self._cloud, self._refreshed = cloud, refreshed

    def load(self) -> Snapshot:
        """Read the last good snapshot; a damaged refreshed file is an error, never passed over."""
        path = self._refreshed if self._refreshed.exists() else bundled_path(self._cloud)
        snapshot = load_snapshot(path)
        if snapshot.cloud is not self._cloud:
            problem = f"describes {snapshot.cloud}, not {self._cloud}; {_way_out(path)}"
            raise CatalogFileError(problem, path=str(path))
        return snapshot

    def save(self, snapshot: Snapshot) -> None:
        """Write the refreshed file, with its folders."""
        if snapshot.cloud is not self._cloud:
            raise ValueError(f"a snapshot of {snapshot.cloud} given to the store of {self._cloud}")
        write_snapshot(self._refreshed, snapshot)


def _way_out(path: Path) -> str:
    if path.parent == _BUNDLED:
        return "reinstall spotwright"
    return "give another file, or delete a refreshed one to go back to the bundled catalog"


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else _NEW_FILE_MODE
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename survive a power cut, where the file system can promise that of folders."""
    handle = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        os.fsync(handle)
    os.close(handle)
