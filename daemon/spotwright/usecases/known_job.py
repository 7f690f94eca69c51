"""What a replica knows of a job that it steers, and who lets it change the job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from spotwright.domain.job_run import JobRun, NewEvent
from spotwright.domain.offer import Pool
from spotwright.usecases.advise_checkpoints import Saving
from spotwright.usecases.carry_out import Doing
from spotwright.usecases.look_at_fleet import Due
from spotwright.usecases.standing_fleet import Meters
from spotwright.usecases.steering_notes import SteeringNotes

Change = Callable[[JobRun], tuple[JobRun, Sequence[NewEvent]]]


class Keeper(Protocol):
    """Whoever controls the jobs."""

    def change_mine(self, job_id: str, change: Change) -> JobRun | None:
        """Change a job, if this replica still controls it; None: it does not. Blocks."""

    async def serially(self, work: Callable[[], None]) -> None:
        """Do something in the controller's thread, between two looks."""

    def wake(self, job_id: str) -> None:
        """Look at a job at once. On the event loop."""


@dataclass(slots=True)
class KnownJob:
    """What is known of one job.

    `notes` are what the store has, but for what goes on by itself: they are replaced once a change
    was committed, so that what could not be kept is seen again.
    """

    job_id: str
    notes: SteeringNotes
    meters: Meters = field(default_factory=Meters)
    first_plan_id: str = ""
    is_steered: bool = False
    is_mine: bool = True  # no other replica may control it by now
    untold: list[Saving] = field(default_factory=list)  # that training must still hear
    due: Due | None = None
    going: tuple[str, ...] = ()  # nodes that are lost or will be taken, as seen last
    doing: Doing = Doing.NOTHING
    not_before: datetime | None = None  # a decision failed
    is_undecided: bool = False  # as the log of the job says
    priced: datetime | None = None  # when prices were asked for
    priced_pools: frozenset[Pool] = frozenset()  # that had no price then
    pricing: bool = False
    deciding: bool = False
    carrying: bool = False
