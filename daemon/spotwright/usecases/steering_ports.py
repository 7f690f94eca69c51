"""What steering jobs needs from outside."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spotwright.domain.job_run import NewEvent, PlanRecord
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import SteeringAnswer, SteeringQuestion


class Decider(Protocol):
    """Decides, which takes a processor for a while."""

    async def decide(self, question: SteeringQuestion) -> SteeringAnswer:
        """Return what a running job does next, or raise SpotwrightError."""

    async def prices(self, job: JobDocument) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job could use costs now, in USD per hour.

        Raises:
            SpotwrightError: it cannot be told.
        """

    async def variables(self, plan: PlanRecord) -> str:
        """Return the Terraform variables of a plan, or raise SpotwrightError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What an apply did beside what its variables say."""

    ended: tuple[str, ...] = ()  # nodes that were ended by name, so that no other one was
    problem: str = ""  # why the cloud itself chose which nodes end


class Fleets(Protocol):
    """Where fleets of jobs are rented; all may take long."""

    def write(self, job_id: str, variables: str) -> str:
        """Write the variables of a job's fleet, whole or not at all; return where.

        Raises:
            SpotwrightError: it cannot be written.
        """

    def apply(
        self,
        job_id: str,
        variables: str,
        *,
        is_wanted: Callable[[], bool],
        going: Sequence[str] = (),
    ) -> Applied | None:
        """Rent what the variables say; to do so again, also after a kill, rents nothing twice.

        Args:
            job_id: whose fleet it is.
            variables: what it is to be.
            is_wanted: asked right before anything is rented or given up.
            going: nodes that end before others where a pool gets smaller, the first ones first.

        Returns:
            What it did; None: it was not wanted any more.

        Raises:
            SpotwrightError: it failed, perhaps half-way, or it might rent what runs already.
        """

    def replace_nodes(self, job_id: str, node_ids: Collection[str]) -> tuple[str, ...]:
        """End nodes of a job's fleet, others taking their place; return those that still ran.

        Raises:
            SpotwrightError: it failed, perhaps half-way; to do so again ends no other node.
        """

    def give_back(self, job_id: str) -> None:
        """Give back all that is rented for a job; to do so again changes nothing.

        Raises:
            SpotwrightError: it failed, perhaps half-way.
        """


class Advice(Protocol):
    """Tells training, through agents, about checkpoints."""

    def checkpoint(
        self, agent_ids: Collection[str], *, interval_s: float | None, seconds_left: float | None
    ) -> None:
        """Have agents tell training when to save its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """Where decisions go; None: nowhere."""

    fleets: Fleets | None = None
    advice: Advice | None = None
    tell: Callable[[str, NewEvent], None] | None = None  # what is logged about steered jobs
