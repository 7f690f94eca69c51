"""One steering replica in a process of its own: `python -m ... STORE_URL REPLICA FOLDER`.

What it announces, applies and tells training is a line in FOLDER/told.txt, so that what two
replicas did can be held against each other. It is held up in what it does while there is a file
FOLDER/REPLICA-decides or FOLDER/REPLICA-applies.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.job_run import NewEvent
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion
from spotwright.usecases.control_jobs import ControlTimes, JobControl
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.steer_jobs import JobSteering
from spotwright.usecases.steering_ports import Applied, Outlets
from tests.usecases.example_job import catalog
from tests.usecases.steered_cluster import DirectDecider

TIMES = ControlTimes(period_s=0.5, lease_ttl_s=3.0)


class Told:
    """Writes down what leaves a replica."""

    def __init__(self, folder: Path, replica: str) -> None:
        self._folder, self._replica = folder, replica

    def is_held_up(self, doing: str) -> bool:
        return (self._folder / f"{self._replica}-{doing}").exists()

    def line(self, *words: object) -> None:
        with (self._folder / "told.txt").open("a", encoding="utf-8") as file:
            file.write(" ".join([self._replica, *map(str, words)]) + "\n")

    def announce(self, job_id: str, event: NewEvent) -> None:
        self.line("announced", event.kind)

    def checkpoint(
        self, agent_ids: Collection[str], *, interval_s: float | None, seconds_left: float | None
    ) -> None:
        self.line("interval" if interval_s is not None else "save", *agent_ids)

    def write(self, job_id: str, variables: str) -> str:
        raise AssertionError("the job has its fleets applied")

    def give_back(self, job_id: str) -> None:
        raise AssertionError("the job has no budget that could be spent")

    def replace_nodes(self, job_id: str, node_ids: Collection[str]) -> tuple[str, ...]:
        raise AssertionError("none of the job's nodes has shrunk")

    def apply(
        self,
        job_id: str,
        variables: str,
        *,
        is_wanted: Callable[[], bool],
        going: Sequence[str] = (),
    ) -> Applied | None:
        self.line("applies", variables.rpartition(" ")[2])
        while self.is_held_up("applies"):
            time.sleep(0.02)
        return Applied() if is_wanted() else None


class SlowDecider(DirectDecider):
    """Can be held up, to be killed while it decides."""

    def __init__(self, told: Told) -> None:
        super().__init__(catalog(), lambda: datetime.now(UTC))
        self._told = told

    async def decide(self, question: SteeringQuestion) -> SteeringAnswer:
        self._told.line("decides", sum(question.now.staying.values()))
        while self._told.is_held_up("decides"):
            await asyncio.sleep(0.02)
        return await super().decide(question)


def main() -> None:
    """Steer jobs until killed."""
    url, replica, folder = sys.argv[1:]
    store, told = open_store(url), Told(Path(folder), replica)
    planned = PlannedRuns(store, read_planned_run)
    steering = JobSteering(
        store,
        planned,
        SlowDecider(told),
        clock=lambda: datetime.now(UTC),
        outlets=Outlets(fleets=told, advice=told, tell=told.announce),
    )
    control = JobControl(
        store,
        planned,
        replica=replica,
        clock=lambda: datetime.now(UTC),
        times=TIMES,
        steering=steering,
    )
    asyncio.run(control.run(asyncio.Event()))


if __name__ == "__main__":
    main()
