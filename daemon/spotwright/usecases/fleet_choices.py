"""Which fleets a running job could have, by what is left of its goal.

A share of the goal takes that share of the time and of the money, so that a job with a share `left`
to do within `hours` asks for the same fleet as a whole one within hours / left. Questions are put
in terms of the whole goal, and rounded, so that one who asks often is answered from memory.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from spotwright.domain.errors import BadInputError, NoFeasibleFleetError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Offer, Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.shrunk import ShrunkNode
from spotwright.perfmodel.fleets import FleetEvaluator, FleetFigures
from spotwright.perfmodel.shrunk_nodes import with_shrunk
from spotwright.perfmodel.step_model import worker_class
from spotwright.planner.problem import Problem, Watch, at_most
from spotwright.planner.solve import solve
from spotwright.usecases.list_offers import server_offers, worker_offers
from spotwright.usecases.ports import OfferSource

_GRID = 50  # deadlines and budgets are told apart by 2 %
_SWITCHING_GRID = 4  # what it costs to start nodes, by 28 %: it only decides between like fleets
MOST_BOXES = 400  # of one search: a controller has seconds, and a good fleet comes early


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a fleet must do, in terms of the whole goal."""

    deadline_s: float = math.inf
    budget_usd: float = math.inf
    most_by_pool: Mapping[Pool, int] = field(default_factory=dict)  # 0: nothing
    running: RunningFleet = field(default_factory=RunningFleet)
    hazards_per_hour: Mapping[Pool, float] = field(default_factory=dict)
    prices_usd_per_hour: Mapping[Pool, float] = field(default_factory=dict)
    markets: frozenset[Market] = frozenset(Market)
    objective: Objective = Objective.COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A fleet, and what it does with the whole goal."""

    fleet: Fleet
    work_s: float  # if nothing is interrupted
    duration_s: float  # with what interruptions are expected to cost
    cost_usd: float

    @property
    def workers(self) -> dict[Pool, int]:
        """Its workers by pool."""
        return {g.offer.pool: g.node_count for g in self.fleet.workers if g.offer}

    @property
    def servers(self) -> dict[Pool, int]:
        """Its servers by pool."""
        return {g.offer.pool: g.node_count for g in self.fleet.servers if g.offer}

    @property
    def usd_per_hour(self) -> float:
        """What all of it costs."""
        return self.fleet.usd_per_hour or 0.0

    @property
    def has_spot(self) -> bool:
        """Whether any of it can be taken away."""
        return any(g.market is Market.SPOT for g in self.fleet.nodes)


class _ByDeadline:
    """Answers to questions that differ in their deadline only."""

    def __init__(self) -> None:
        self._deadlines_s: list[float] = []
        self._found: list[Choice | None] = []

    def at(self, deadline_s: float) -> tuple[bool, Choice | None]:
        """Return whether the answer is known, and the answer.

        What is best both for a shorter and for a longer deadline is best between them; and so is
        what is best for a longer deadline and done before the shorter one.
        """
        place = bisect_left(self._deadlines_s, deadline_s)
        if place == len(self._found):
            return False, None
        after = self._found[place]
        if self._deadlines_s[place] == deadline_s:
            return True, after
        if after is not None and after.duration_s <= deadline_s:
            return True, after
        before = self._found[place - 1] if place else None
        if before is not None and after is not None and before.fleet == after.fleet:
            return True, after
        return False, None

    def add(self, deadline_s: float, found: Choice | None) -> None:
        """Remember an answer."""
        place = bisect_left(self._deadlines_s, deadline_s)
        self._deadlines_s.insert(place, deadline_s)
        self._found.insert(place, found)


class FleetChoices:
    """Finds fleets for one job, and remembers them."""

    def __init__(
        self,
        job: JobSpec,
        source: OfferSource,
        *,
        now: datetime | None = None,
        watch: Watch | None = None,
        most_boxes: int = MOST_BOXES,
    ) -> None:
        self._job, self._source, self._now = job, source, now
        self._watch, self._most_boxes = watch or Watch(), most_boxes
        self._offers = {
            offer.pool: offer
            for offers in (
                worker_offers(_open(job), source, now=now),
                server_offers(_open(job), source, now=now),
            )
            for offer in offers
        }
        self._found: dict[object, _ByDeadline] = {}
        self._figured: dict[object, Choice | None] = {}

    @property
    def job(self) -> JobSpec:
        """The job that fleets are for."""
        return self._job

    @property
    def offers(self) -> Mapping[Pool, Offer]:
        """What it could rent, excluded pools too, at the catalog's prices."""
        return self._offers

    def best(self, question: Question) -> Choice | None:
        """Return the cheapest or fastest fleet that will do; None where there is none.

        What is best with every pool up, and takes none that is not, is best without those, too.
        """
        if question.most_by_pool:
            found = self.best(replace(question, most_by_pool={}))
            if found is not None and _keeps(found, question.most_by_pool):
                return found
        rounded = replace(
            question,
            deadline_s=_rounded_down(question.deadline_s),
            budget_usd=_rounded_down(question.budget_usd),
            hazards_per_hour={
                pool: hazard
                for pool, hazard in question.hazards_per_hour.items()
                if question.most_by_pool.get(pool) != 0
            },
            running=replace(
                question.running,
                switching_s=_rounded_down(question.running.switching_s, _SWITCHING_GRID),
            ),
        )
        known = self._found.setdefault(_key(rounded), _ByDeadline())
        is_known, found = known.at(rounded.deadline_s)
        if not is_known:
            found = self._solved(rounded) or self._solved(question)
            known.add(rounded.deadline_s, found)
        return found

    def of(
        self, workers: Mapping[Pool, int], servers: Mapping[Pool, int], question: Question
    ) -> Choice | None:
        """Return what given nodes do; None where they cannot do the job."""
        key = (
            frozenset(workers.items()),
            frozenset(servers.items()),
            frozenset(question.hazards_per_hour.items()),
            frozenset(question.prices_usd_per_hour.items()),
        )
        if key not in self._figured:
            self._figured[key] = self._evaluated(workers, servers, question)
        return self._figured[key]

    def share_left(
        self, workers: Mapping[Pool, int], servers: Mapping[Pool, int], shrunk: Sequence[ShrunkNode]
    ) -> float:
        """Return the share of their speed that given nodes keep though some have shrunk."""
        whole = self.of(workers, servers, Question()) if shrunk else None
        if whole is None:
            return 1.0
        slowed = self._evaluated(workers, servers, Question(), shrunk)
        return 1.0 if slowed is None else whole.work_s / slowed.work_s

    def _solved(self, question: Question) -> Choice | None:
        try:
            job = self._asked(question)
            solution = solve(
                self._problem(job, question),
                objective=question.objective,
                watch=at_most(self._watch, self._most_boxes),
            )
        except (BadInputError, NoFeasibleFleetError):
            return None
        if solution.fleet is None:
            return None
        pools = {g.offer.pool: g.node_count for g in solution.fleet.workers if g.offer}
        servers = {g.offer.pool: g.node_count for g in solution.fleet.servers if g.offer}
        return self.of(pools, servers, question)

    def _asked(self, question: Question) -> JobSpec:
        """Return the job with what is asked in place of its own goal and limits."""
        job, limits = self._job, self._job.limits
        none = {pool: None for pool, most in question.most_by_pool.items() if most == 0}
        some = {pool: most for pool, most in question.most_by_pool.items() if most > 0}
        finite = math.isfinite
        return replace(
            job,
            workload=replace(
                job.workload,
                spot=replace(job.workload.spot, hazards_per_hour=question.hazards_per_hour),
            ),
            goal=replace(
                job.goal,
                deadline_s=question.deadline_s if finite(question.deadline_s) else None,
                budget_usd=question.budget_usd if finite(question.budget_usd) else None,
            ),
            limits=replace(
                limits,
                markets=limits.markets & question.markets,
                excluded_pools={**limits.excluded_pools, **none},
                max_count_by_pool=some,
            ),
        )

    def _problem(self, job: JobSpec, question: Question) -> Problem:
        prices = question.prices_usd_per_hour
        return Problem(
            job=job,
            worker_offers=_priced(worker_offers(job, self._source, now=self._now), prices),
            server_offers=_priced(server_offers(job, self._source, now=self._now), prices),
            gpu_facts=self._source.gpu,
            running=question.running,
        )

    def _evaluated(
        self,
        workers: Mapping[Pool, int],
        servers: Mapping[Pool, int],
        question: Question,
        shrunk: Sequence[ShrunkNode] = (),
    ) -> Choice | None:
        if not workers:
            return None
        try:
            groups = [self._group(Role.WORKER, *item, question) for item in sorted(workers.items())]
            serving = [self._group(Role.PS, *item, question) for item in sorted(servers.items())]
            figures = self._figures(groups, serving, question, shrunk)
        except BadInputError:
            return None
        if not (figures.fits_memory[0] and figures.in_fitted_range[0]):
            return None
        return Choice(
            fleet=Fleet(nodes=(*groups, *serving)),
            work_s=float(figures.work_s[0]),
            duration_s=float(figures.duration_s[0]),
            cost_usd=float(figures.cost_usd[0]),
        )

    def _figures(
        self,
        workers: Sequence[NodeGroup],
        servers: Sequence[NodeGroup],
        question: Question,
        shrunk: Sequence[ShrunkNode],
    ) -> FleetFigures:
        job = self._asked(replace(question, most_by_pool={}))
        classes = [
            worker_class(job.workload, group, self._source.gpu, job.limits.network)
            for group in workers
        ]
        pools = [group.offer.pool for group in workers if group.offer]
        classes, numbers = with_shrunk(
            classes,
            [float(group.node_count) for group in workers],
            [(pools.index(node.pool), node.shrinkage) for node in shrunk],
        )
        counts = np.array(numbers)[:, None]
        most = int(counts.sum())
        return FleetEvaluator(job, classes, servers, most_workers=most).evaluate(counts)

    def _group(self, role: Role, pool: Pool, count: int, question: Question) -> NodeGroup:
        offer = self._offers.get(pool)
        if offer is None:
            raise BadInputError(f"nobody offers {pool} any more")
        kind = offer.instance_type
        return NodeGroup(
            role=role,
            instance_type=kind,
            node_count=count,
            gpus_per_node=kind.gpu_count if role is Role.WORKER else 0,
            offer=_priced([offer], question.prices_usd_per_hour)[0],
        )


def _keeps(choice: Choice, most_by_pool: Mapping[Pool, int]) -> bool:
    """Tell whether a fleet has no more of some pools than they give, nor servers in closed ones."""
    workers, servers = choice.workers, choice.servers
    return all(
        workers.get(pool, 0) <= most and (most > 0 or pool not in servers)
        for pool, most in most_by_pool.items()
    )


def _open(job: JobSpec) -> JobSpec:
    """Return the job without exclusions: what runs may stand in a pool that is excluded by now."""
    return replace(job, limits=replace(job.limits, excluded_pools={}))


def _priced(offers: Sequence[Offer], prices: Mapping[Pool, float]) -> list[Offer]:
    """Return offers at newer prices, where there are any."""
    return [
        replace(offer, price_usd_per_hour=prices[offer.pool]) if offer.pool in prices else offer
        for offer in offers
    ]


def _rounded_down(value: float, grid: int = _GRID) -> float:
    if not math.isfinite(value) or value <= 0:
        return value
    return float(math.exp(math.floor(math.log(value) * grid) / grid))


def _key(question: Question) -> object:
    """Return all of a question but its deadline."""
    return (
        question.budget_usd,
        question.objective,
        question.running.switching_s,
        *(
            tuple(sorted(mapping.items()))
            for mapping in (
                question.most_by_pool,
                question.running.nodes,
                question.running.servers,
                question.hazards_per_hour,
                question.prices_usd_per_hour,
            )
        ),
        tuple(sorted(question.markets)),
    )
