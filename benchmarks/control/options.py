"""What every case is given."""

from dataclasses import dataclass
from pathlib import Path

SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where data lies, how much is run, and by how many."""

    data: Path
    windows: int  # of each cell
    processes: int


class DataAbsentError(Exception):
    """The folder of shared data is not there, so that a case cannot be run."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is absent; name the folder with --data")


def require_data(path: Path) -> Path:
    """Return a file of the data folder, or raise DataAbsentError."""
    if not path.exists():
        raise DataAbsentError(path)
    return path
