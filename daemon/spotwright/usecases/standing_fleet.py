"""How fast a job goes with the nodes that are there, where nobody makes its fleet whole again.

    planned share = samples/s of the nodes that train / samples/s of the whole fleet, by its plan
    pace          = what was measured since the nodes changed, over the planned speed; until that
                    can be told, planned share * (pace / planned share) before they changed

Nodes that are lost are seen to be only after a while of silence, in which the job was slower
already: the pace before a change is that of before such a silence.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spotwright.domain.job import TargetKind
from spotwright.domain.job_run import JobRun
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.steering import JobView, NodeState
from spotwright.domain.workload import Strategy
from spotwright.usecases.follow_job import SILENT_AFTER_S
from spotwright.usecases.forecast_job import PaceMeter

_UNSEEN = timedelta(seconds=SILENT_AFTER_S + 10.0)  # in which nodes may have been lost already
_COUNTING_STEPS = (TargetKind.STEPS, TargetKind.LOSS)


class StandingPace:
    """Measures the pace of whatever nodes there are."""

    def __init__(self) -> None:
        self._meter = PaceMeter()
        self._plan_id = ""
        self._share = 1.0
        self._per_share = 1.0  # pace over planned share, before the nodes changed
        self._told: deque[tuple[datetime, float]] = deque()  # the same, look by look since then

    def measured(
        self, job: JobRun, planned: PlannedRun, *, now: datetime, share: float
    ) -> float | None:
        """Return the speed of a job over the planned one; None where nothing is known of it.

        Args:
            job: as it stands.
            planned: its current plan.
            now: the daemon's clock.
            share: of the planned speed that the nodes have which are there.
        """
        if job.plan_id != self._plan_id:
            self._plan_id, self._per_share, self._share = job.plan_id, 1.0, share
            self._begin_anew()
        elif share != self._share:
            self._per_share = self._before(now - _UNSEEN)
            self._share = share
            self._begin_anew()
        if share == 0:
            return 0.0
        pace = self._meter.measured(job, planned, now=now, is_whole=True)
        if pace:
            self._told.append((now, pace / share))
            while len(self._told) > 1 and self._told[1][0] <= now - _UNSEEN:
                self._told.popleft()
        is_as_planned = share == 1.0 and self._per_share == 1.0
        return None if pace is None and is_as_planned else self._or_expected(pace)

    def _or_expected(self, pace: float | None) -> float:
        return self._share * self._per_share if pace is None else pace

    def _before(self, moment: datetime) -> float:
        """Return what was told until a moment, or else before."""
        return next((told for at, told in reversed(self._told) if at <= moment), self._per_share)

    def _begin_anew(self) -> None:
        self._meter = PaceMeter()
        self._told.clear()


@dataclass(slots=True)
class Meters:
    """What measures one job."""

    whole: PaceMeter = field(default_factory=PaceMeter)
    standing: StandingPace = field(default_factory=StandingPace)


def planned_share(view: JobView, planned: PlannedRun) -> float:
    """Return the share of its planned speed that a job has by the nodes that train.

    Synchronous workers that lose some of them make steps as before, of fewer samples: a goal that
    counts steps comes no later, as far as a plan tells.
    """
    counts_steps = planned.target is not None and planned.target.kind in _COUNTING_STEPS
    if counts_steps and planned.strategy is not Strategy.ASP_PS:
        return 1.0
    there = Counter(n.pool for n in view.nodes if n.state is not NodeState.STARTING)
    speeds = _steps_per_s(planned)
    whole = sum(speeds.get(pool.instance_type, 1.0) * n for pool, n in view.asked.items())
    present = sum(speeds.get(pool.instance_type, 1.0) * n for pool, n in there.items())
    return min(1.0, present / whole) if whole else 1.0


def _steps_per_s(planned: PlannedRun) -> Mapping[str, float]:
    """Return how fast one node of each type steps; synchronous ones step together."""
    if planned.strategy is not Strategy.ASP_PS:
        return {}
    return {pool.instance_type: 1 / pool.step_s for pool in planned.pools if pool.step_s > 0}
