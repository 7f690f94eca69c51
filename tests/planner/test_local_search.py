"""Fleets found by adding, dropping and swapping nodes: real ones, and good ones."""

from collections.abc import Iterator

import numpy as np
import pytest

from spotwright.domain.workload import Strategy
from spotwright.perfmodel.predict import predict
from spotwright.planner.branch_and_bound import Incumbent
from spotwright.planner.local_search import LocalSearch
from spotwright.usecases.broken_limits import broken_limits
from tests.planner.contexts import contexts
from tests.planner.oracle import Best
from tests.planner.random_problems import Drawn, draw
from tests.planner.relaxed_points import relaxed_at

STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = range(65_000, 65_025)

all_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


def best_of_all(drawn: Drawn) -> Best | None:
    goal = drawn.problem.job.goal
    return drawn.fleets.best(
        drawn.objective, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd
    )


def started(strategy: Strategy) -> Iterator[tuple[Drawn, Incumbent]]:
    """Yield problems and what is found before any box is looked at."""
    for seed in SEEDS:
        drawn, incumbent = draw(strategy, seed), Incumbent()
        LocalSearch(incumbent).start(contexts(drawn))
        yield drawn, incumbent


@all_strategies
def test_fleets_found_keep_goals_and_limits(strategy: Strategy) -> None:
    for drawn, found in started(strategy):
        if found.context is not None and found.counts is not None:
            job = drawn.problem.job
            prediction = predict(job, found.context.fleet(found.counts), drawn.problem.gpu_facts)
            broken = broken_limits(job, prediction)

            chance = ("the deadline", "counting the model's own error")  # only expected so far
            assert [text for text in broken if not text.startswith(chance)] == [], drawn.seed
            deadline_s = job.goal.deadline_s or np.inf
            assert prediction.duration_s.mid <= deadline_s * (1 + 1e-6), drawn.seed


@all_strategies
def test_fleets_found_are_near_the_best_of_all(strategy: Strategy) -> None:
    beyond = []
    for drawn, found in started(strategy):
        best = best_of_all(drawn)
        if best is None:
            assert found.counts is None, drawn.seed
        else:
            beyond.append(found.objective / best.value(drawn.objective))

    assert min(beyond) >= 1 - 1e-9
    assert np.median(beyond) <= 1.001
    assert np.mean(np.array(beyond) <= 1.1) >= 0.75


@all_strategies
def test_polishing_any_point_never_loses_what_is_known(strategy: Strategy) -> None:
    random = np.random.default_rng(7)
    for drawn, found in started(strategy):
        local = LocalSearch(found)
        for context in contexts(drawn)[:3]:
            for _ in range(5):
                before = found.objective
                upper = np.minimum(context.limits.upper, context.most_workers)
                local.polish(context, relaxed_at(random.uniform(0, upper / 2)))
                assert found.objective <= before, drawn.seed
        best = best_of_all(drawn)
        least = best.value(drawn.objective) if best else np.inf
        assert found.objective >= least * (1 - 1e-9), drawn.seed


def test_a_point_of_whole_counts_is_taken_as_it_is() -> None:
    drawn = draw(Strategy.ALLREDUCE, SEEDS[1])
    best = best_of_all(drawn)
    assert best is not None
    nodes = {group.offer.pool: group.node_count for group in best.fleet.workers if group.offer}
    found = Incumbent()
    for context in contexts(drawn):
        counts = context.counts_of(nodes)
        if counts is not None:
            LocalSearch(found).polish(context, relaxed_at(counts))

    assert found.objective == pytest.approx(best.value(drawn.objective))


def test_the_point_of_a_box_that_was_not_solved_is_left_alone() -> None:
    drawn, found = draw(Strategy.ALLREDUCE, SEEDS[1]), Incumbent()
    for context in contexts(drawn):
        point = np.ones(len(context.workers))
        LocalSearch(found).polish(context, relaxed_at(point)._replace(program=None))

    assert found.counts is None
