"""What controllers noticed about a job, read from its log."""

from spotwright.usecases.follow_job import Memory, remember
from spotwright.usecases.store_ports import JobStore

_PAGE = 1000


def remembered(job_id: str, store: JobStore) -> Memory:
    """Return what was noticed: it is not logged again, and reports say what the log says."""
    memory, last = Memory(), 0
    while True:
        page = store.events(job_id, after_sequence=last, limit=_PAGE)
        memory = remember(page, memory)
        if len(page) < _PAGE:
            return memory
        last = page[-1].sequence
