"""Steps of jobs in the database, each counted once."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection, case, func, select

from spotwright.adapters.store.database import Database
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import job_steps
from spotwright.domain.telemetry import ReceivedBatch, StepSums

_CHUNK = 500  # names in one question


class SqlJobSteps(StorePart):
    """How far agents say that jobs are."""

    def job_steps(self, job_ids: Collection[str]) -> Mapping[str, Sequence[StepSums]]:
        """Return the sums of each agent that made steps for these jobs."""
        found: defaultdict[str, list[StepSums]] = defaultdict(list)
        names = sorted(job_ids)
        with self._database.reading() as connection:
            for first in range(0, len(names), _CHUNK):
                some = job_steps.c.job_id.in_(names[first : first + _CHUNK])
                for row in connection.execute(select(job_steps).where(some)):
                    found[row.job_id].append(
                        StepSums(
                            step_count=row.step_count,
                            last_step=row.last_step,
                            samples=row.samples,
                            loss=row.loss,
                        )
                    )
        return found


def add_steps(database: Database, connection: Connection, new: Iterable[ReceivedBatch]) -> None:
    """Add the steps of batches that were not stored before, in their order."""
    sums: dict[tuple[str, str], StepSums] = {}
    for batch in new:
        if batch.job_id and batch.steps is not None:
            name = batch.job_id, batch.key.agent_id
            sums[name] = sums[name].added(batch.steps) if name in sums else batch.steps
    if not sums:
        return
    insert = database.insert(job_steps)
    given, kept = insert.excluded, job_steps.c
    add = insert.on_conflict_do_update(
        index_elements=[kept.job_id, kept.agent_id],
        set_={
            "step_count": kept.step_count + given.step_count,
            "last_step": case(
                (given.last_step > kept.last_step, given.last_step), else_=kept.last_step
            ),
            "samples": case(
                (given.samples.is_(None), kept.samples),
                else_=func.coalesce(kept.samples, 0.0) + given.samples,
            ),
            "loss": func.coalesce(given.loss, kept.loss),
        },
    )
    # By name: two replicas that lock the same rows lock them in the same order.
    rows = [
        {
            "job_id": job_id,
            "agent_id": agent_id,
            "step_count": each.step_count,
            "last_step": each.last_step,
            "samples": each.samples,
            "loss": each.loss,
        }
        for (job_id, agent_id), each in sorted(sums.items())
    ]
    connection.execute(add, rows)
