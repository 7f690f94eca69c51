"""A snapshot store that keeps its snapshot in memory."""

from spotwright.domain.catalog import Snapshot


class MemorySnapshotStore:
    """Starts with a last good snapshot; counts how often it was replaced."""

    def __init__(self, last: Snapshot) -> None:
        self.snapshot = last
        self.save_count = 0

    def load(self) -> Snapshot:
        return self.snapshot

    def save(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.save_count += 1
