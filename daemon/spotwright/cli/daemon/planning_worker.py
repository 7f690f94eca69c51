"""Wiring of a worker process that answers for the daemon."""

import time
from contextlib import suppress
from types import TracebackType
from typing import Self

# All that an answer needs is imported before the process says that it is ready.
import spotwright.adapters.jobfile.read
import spotwright.adapters.measurements.read
import spotwright.adapters.terraform.variables
import spotwright.usecases.compare_fleets
import spotwright.usecases.compare_rivals
import spotwright.usecases.predict_configurations
import spotwright.usecases.replan_job  # noqa: F401
from spotwright.adapters.grpc.planning.answers import Answers
from spotwright.adapters.processes.worker import Control, Handler
from spotwright.cli.config import read_config
from spotwright.cli.daemon.replanners import Replanners
from spotwright.cli.daemon.structured_log import set_up_logging
from spotwright.cli.in_process import InProcessPlanner
from spotwright.cli.sources import Catalogs, Jobs
from spotwright.domain.errors import SpotwrightError
from spotwright.domain.hardware import Cloud
from spotwright.planner.problem import Watch


def make_handler() -> Handler:
    """Return what answers requests, with the catalog that most of them need already read."""
    set_up_logging(level="info", as_json=True)  # its stderr is the daemon's
    catalogs = Catalogs(read_config())
    jobs = Jobs(catalogs.of)
    with suppress(SpotwrightError):  # whoever asks is told
        catalogs.of(Cloud.AWS)
    replanners = Replanners(jobs)

    def answer(method: str, request: bytes, control: Control) -> bytes:
        planner = InProcessPlanner(
            jobs, catalogs, look=lambda _, time_limit_s: TaskWatch(control, time_limit_s)
        )
        answers = Answers(
            planner,
            catalog_of=catalogs.of,
            tfvars_of=planner.tfvars_of,
            steering=replanners,
        )
        return answers.reply(method, request)

    return answer


class TaskWatch:
    """Ends a search at its time limit, when its answer is due, and when nobody waits for it."""

    def __init__(self, control: Control, time_limit_s: float) -> None:
        self._control = control
        self._ends_s = time.monotonic() + min(time_limit_s, control.left_s)
        self.ended_early = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    @property
    def watch(self) -> Watch:
        """What the search is given."""
        return Watch(stopped=self._stopped)

    def _stopped(self) -> bool:
        is_late = time.monotonic() >= self._ends_s
        self.ended_early = self.ended_early or self._control.stopped or is_late
        return self.ended_early
