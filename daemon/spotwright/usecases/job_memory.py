"""What controllers noticed about a job, read from its log."""

from collections.abc import Iterator

from spotwright.domain.job_run import Event
from spotwright.usecases.follow_job import Memory, remember
from spotwright.usecases.store_ports import JobStore

_PAGE = 1000


def remembered(job_id: str, store: JobStore) -> Memory:
    """Return what was noticed: it is not logged again, and reports say what the log says."""
    return remember(all_events(job_id, store))


def all_events(job_id: str, store: JobStore) -> Iterator[Event]:
    """Return everything that happened to a job, oldest first, read page by page."""
    last = 0
    while True:
        page = store.events(job_id, after_sequence=last, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1].sequence
