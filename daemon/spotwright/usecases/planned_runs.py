"""Look up what the plan of a job promises."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.store_ports import PlanStore

ReadPlan = Callable[[bytes], PlannedRun]  # from the document of a plan

_KEPT = 4096  # a plan never changes, and progress is reported every few seconds


class PlannedRuns:
    """The plans asked for last, each read from the store once. Any thread may ask."""

    def __init__(self, store: PlanStore, read: ReadPlan) -> None:
        self._store, self._read = store, read
        self._kept: OrderedDict[str, PlannedRun] = OrderedDict()
        self._lock = Lock()

    def of(self, plan_id: str) -> PlannedRun:
        """Return what a plan promises, or raise NotFoundError."""
        with self._lock:
            if plan_id in self._kept:
                self._kept.move_to_end(plan_id)
                return self._kept[plan_id]
        found = self._read(self._store.plan(plan_id).document)
        with self._lock:
            self._kept[plan_id] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found
