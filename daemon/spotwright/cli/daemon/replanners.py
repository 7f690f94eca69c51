"""Decisions about running jobs, in a process that remembers the jobs it was asked about last."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from spotwright.cli.sources import Jobs, OpenedJob
from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering_question import Replanned, SteeringQuestion
from spotwright.usecases.replan_job import Replanner
from spotwright.usecases.steering_rules import SteeringRules

_KEPT = 64
_HOLDS = timedelta(minutes=10)  # then pools that were excluded for a while may be back


class Replanners:
    """One for each job file and catalog."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._kept: OrderedDict[JobDocument, tuple[OpenedJob, datetime, Replanner]] = OrderedDict()

    def decided(self, question: SteeringQuestion) -> Replanned:
        """Answer a question."""
        return self._of(question.job).decided(question, rules=SteeringRules(), clock=time.monotonic)

    def prices(self, job: JobDocument) -> Mapping[Pool, float]:
        """Return what one node of each pool that a job could use costs, in USD per hour."""
        return self._of(job).prices_usd_per_hour

    def _of(self, document: JobDocument) -> Replanner:
        opened, now = self._jobs.open(document), datetime.now(UTC)
        kept = self._kept.get(document)
        if kept is None or kept[0].catalog is not opened.catalog or now - kept[1] > _HOLDS:
            kept = opened, now, Replanner(opened.job, opened.catalog, now=now)
            self._kept[document] = kept
        self._kept.move_to_end(document)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return kept[2]
