"""What `spotwright simulate` does with its flags: plan, draw markets, run, and tell."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from spotwright.adapters.sweeps.process_pool import ProcessPool
from spotwright.cli.drawn_markets import DrawnMarkets, drawn_markets
from spotwright.cli.extras import needs_extra
from spotwright.cli.promised_plan import Promised, plan_anew, read_plan, require_rentable
from spotwright.cli.simulate_flags import SimulateFlags
from spotwright.cli.simulate_view import print_study, study_json
from spotwright.cli.sources import OpenedJob, open_job
from spotwright.cli.terminal import note, print_json, write_text
from spotwright.domain.errors import BadInputError
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import Strategy
from spotwright.simulator.conditions import Conditions, Squeeze
from spotwright.simulator.outcome import Outcome
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import Spread, Stage, Study, run_study
from spotwright.simulator.summary import Summary, summarised
from spotwright.simulator.two_fleets import two_fleets
from spotwright.usecases.fleet_choices import FleetChoices

Kind = TypeVar("Kind", bound=StrEnum)
_DEFAULT_POLICIES = (
    PolicyName.OURS,
    PolicyName.ON_DEMAND,
    PolicyName.GREEDY,
    PolicyName.UNIFORM_PROGRESS,
)
# A daemon's searches have 400 boxes. With so few, 1 of 78 fleets for resnet50.yaml was 1 % dearer,
# and 19 of 30 for llama-zero3.yaml up to 4 %, in a sixth and a tenth of the CPU time.
_MOST_BOXES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is printed."""

    job: JobSpec
    promised: Promised
    markets: DrawnMarkets
    summaries: dict[PolicyName, Summary]
    runs: int
    seed: int


def simulate_job(
    path: Path, flags: SimulateFlags, *, catalog_file: Path | None, model: str | None
) -> None:
    """Simulate a job and tell what came of it."""
    policies = _policies(flags.policies)
    draw = None if flags.plot is None else _drawing(flags.plot)
    opened = open_job(path, catalog_file=catalog_file, model=model)
    job, promised = _planned(path, opened, flags, catalog_file)
    if job.workload.strategy is Strategy.SERVERLESS:
        raise BadInputError("serverless jobs rent no nodes that could be taken away")
    markets = drawn_markets(flags, job, opened.catalog)
    study = _study(job, opened, promised, markets, flags)
    with _spread(flags) as spread:
        outcomes = run_study(
            study,
            policies,
            runs=flags.runs,
            spread=spread,
            told=_Progress(len(policies) * flags.runs).tell,
        )
    summaries = {policy: summarised(found) for policy, found in outcomes.items()}
    told = Told(
        job=job,
        promised=promised,
        markets=markets,
        summaries=summaries,
        runs=flags.runs,
        seed=flags.seed,
    )
    if flags.as_json:
        print_json(study_json(told))
    else:
        print_study(told)
    if draw is not None:
        draw(
            Stage(study).run(policies[0], 0, is_recorded=True),
            f"{job.name}: one run, steered by {policies[0]}",
        )
        note(f"timeline written to {flags.plot}")


def _policies(names: Sequence[str] | None) -> tuple[PolicyName, ...]:
    wanted = [_named(name, PolicyName, flag="--policy") for name in names or _DEFAULT_POLICIES]
    return tuple(dict.fromkeys(wanted))


def _named(name: str, kinds: type[Kind], *, flag: str) -> Kind:
    try:
        return kinds(name)
    except ValueError:
        raise BadInputError(f"{flag}: no {name!r}; there are {', '.join(kinds)}") from None


def _planned(
    path: Path, opened: OpenedJob, flags: SimulateFlags, catalog_file: Path | None
) -> tuple[JobSpec, Promised]:
    if flags.plan_file is None:
        return plan_anew(path, opened, flags, catalog_file=catalog_file)
    return read_plan(flags.plan_file, opened, flags)


def _study(
    job: JobSpec,
    opened: OpenedJob,
    promised: Promised,
    markets: DrawnMarkets,
    flags: SimulateFlags,
) -> Study:
    rule = flags.deflation
    squeeze = None if rule is None else _named(rule, Squeeze, flag="--deflation")
    choices = FleetChoices(job, opened.catalog)
    if flags.plan_file is not None:
        require_rentable(flags.plan_file, promised, choices)
    return Study(
        job=job,
        source=opened.catalog,
        draw=markets.draw,
        fleets=two_fleets(choices, planned=promised.workers, servers=promised.servers),
        servers=promised.servers,
        planned_s=promised.duration_s,
        starts_planned=True,
        conditions=Conditions(is_probed=False, squeeze=squeeze),
        most_boxes=_MOST_BOXES,
        seed=flags.seed,
    )


@contextmanager
def _spread(flags: SimulateFlags) -> Iterator[Spread]:
    if flags.ray is None:
        yield ProcessPool(flags.processes)
        return
    with needs_extra("ray", "--ray"):
        import ray  # noqa: PLC0415
    from spotwright.adapters.sweeps.ray_cluster import RayCluster  # noqa: PLC0415

    cluster = RayCluster(ray, address=flags.ray)
    try:
        yield cluster
    finally:
        cluster.close()


class _Progress:
    """Tells on stderr how many runs are done, where somebody looks on."""

    def __init__(self, total: int) -> None:
        self._total = total

    def tell(self, done: int) -> None:
        """Tell how many are done by now."""
        if sys.stderr.isatty():
            end = "\n" if done == self._total else ""
            print(f"\r{done} of {self._total} runs", end=end, file=sys.stderr, flush=True)


def _drawing(path: Path) -> Callable[[Outcome, str], None]:
    """Return what draws a run; what it lacks is told before hours of runs."""
    if path.suffix == ".html":
        from spotwright.adapters.report.timeline import timeline_page  # noqa: PLC0415

        return lambda run, title: write_text(path, timeline_page(run, title=title))
    with needs_extra("plot", "--plot FILE.png"):
        from spotwright.adapters.plots.timeline import draw_timeline  # noqa: PLC0415
    return lambda run, title: draw_timeline(path, run, title=title)
