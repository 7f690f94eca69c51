"""One replica's controller in a process of its own: `python -m ... STORE_URL REPLICA`."""

import asyncio
import sys
from datetime import UTC, datetime

from spotwright.adapters.store.sql_store import open_store
from spotwright.usecases.control_jobs import ControlTimes, JobControl
from spotwright.usecases.planned_runs import PlannedRuns
from tests.usecases.example_job_run import planned_run

TIMES = ControlTimes(period_s=1.0, lease_ttl_s=3.0)


def main() -> None:
    """Control jobs until killed."""
    store = open_store(sys.argv[1])
    control = JobControl(
        store,
        PlannedRuns(store, lambda _: planned_run(deadline_s=None)),
        replica=sys.argv[2],
        clock=lambda: datetime.now(UTC),
        times=TIMES,
    )
    asyncio.run(control.run(asyncio.Event()))


if __name__ == "__main__":
    main()
