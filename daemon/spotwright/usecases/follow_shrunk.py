"""What a controller notices about hosts that become less."""

from dataclasses import replace
from datetime import datetime

from spotwright.usecases.find_shrunk import Sizes
from spotwright.usecases.follow_job import Followed, Memory
from spotwright.usecases.shrunk_events import host_of, shrunk_event, whole_event


def follow_shrunk(sizes: Sizes, *, now: datetime, memory: Memory) -> Followed:
    """Return hosts that have become less, or are whole again; what is not told stays as it was."""
    shrunk = [shrunk_event(host, now) for host in sizes.shrunk]
    whole = [whole_event(host, now) for host in sizes.whole]
    gone = {host.part for host in sizes.whole}
    known = {part: host for part, host in memory.shrunk.items() if part not in gone}
    found = {host.part: host for host in map(host_of, shrunk)}  # as the next controller reads them
    return Followed([*shrunk, *whole], replace(memory, shrunk=known | found))
