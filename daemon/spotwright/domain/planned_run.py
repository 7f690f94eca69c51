"""What a job is measured against: the figures of the plan that it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spotwright.domain.job import Target, TargetKind
from spotwright.domain.job_run import JobCourse, Progress
from spotwright.domain.ledger import RentedPool
from spotwright.domain.offer import Pool
from spotwright.domain.prediction import Interval, LinkRates, StepTerms
from spotwright.domain.workload import Strategy

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPool:
    """The workers of one instance type, as the plan expects them to step."""

    instance_type: str
    node_count: int
    step_s: float
    terms: StepTerms
    rates: LinkRates


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNodes:
    """Equal nodes that the plan rents in one pool."""

    role: str  # worker or ps
    pool: RentedPool
    node_count: int
    price_usd_per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """What a plan promises; None where it says nothing."""

    target: Target | None
    steps_to_goal: float  # updates of the model
    samples_to_goal: float
    duration_s: float
    cost_usd: float
    rent_usd_per_hour: float | None  # None: some node has no price, or is billed by use
    samples_per_s: float
    step_s: float | None  # of one worker, averaged over steps
    deadline_s: float | None  # from the first progress
    strategy: Strategy | None = None
    pools: tuple[PlannedPool, ...] = ()  # of workers; none for functions
    nodes: tuple[PlannedNodes, ...] = ()  # all that is rented; what has no price is left out
    workers: Mapping[Pool, int] = field(default_factory=dict)
    servers: Mapping[Pool, int] = field(default_factory=dict)
    prices_usd_per_hour: Mapping[Pool, float] = field(default_factory=dict)  # of one node
    duration_interval_s: Interval | None = None  # None: as `duration_s`
    interruptions_per_hour: float = 0.0  # that the plan expects

    def done_fraction(self, progress: Progress, course: JobCourse) -> float | None:
        """Return the share of a whole job that is reached, of which this plan is the rest."""
        share = self.fraction(_since(progress, course.begun))
        if share is None:
            return None
        return course.begun_fraction + (1 - course.begun_fraction) * share

    def is_done(self, progress: Progress, course: JobCourse) -> bool:
        """Tell whether a whole job, of which this plan is the rest, is trained enough."""
        return self.is_reached(_since(progress, course.begun))

    def fraction(self, progress: Progress) -> float | None:
        """Return the share of the goal that is reached, or None where it cannot be told.

        A loss says little about how much training is left, so such a goal is measured by updates;
        after as many as were planned, with the loss still too high, nothing can be told.
        """
        if self.is_reached(progress):
            return 1.0
        done = self._share_of_work(progress)
        if done is None or (self._counts(TargetKind.LOSS) and done >= 1):
            return None
        return done

    def is_reached(self, progress: Progress) -> bool:
        """Tell whether this is enough training."""
        if self.target is not None and self.target.kind is TargetKind.LOSS:
            return progress.loss is not None and progress.loss <= self.target.value
        done = self._share_of_work(progress)
        return done is not None and done >= 1 - _ROUNDING

    def _share_of_work(self, progress: Progress) -> float | None:
        """Return the share by what the goal counts, or else by whatever was told."""
        shares = (
            _share(progress.samples, self.samples_to_goal),
            _share(progress.steps, self.steps_to_goal),
        )
        by_steps = self._counts(TargetKind.STEPS) or self._counts(TargetKind.LOSS)
        preferred, other = reversed(shares) if by_steps else shares
        return other if preferred is None else preferred

    def _counts(self, kind: TargetKind) -> bool:
        return self.target is not None and self.target.kind is kind


def _since(progress: Progress, begun: Progress) -> Progress:
    """Return what was done since the plan began; a loss is what it is."""
    counts = {
        name: None if count is None else max(0.0, count - (getattr(begun, name) or 0.0))
        for name, count in (("samples", progress.samples), ("steps", progress.steps))
    }
    return replace(progress, **counts)


def _share(done: float | None, whole: float) -> float | None:
    return done / whole if done is not None and whole > 0 else None
