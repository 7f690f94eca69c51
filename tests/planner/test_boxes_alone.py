"""The search without local search: good fleets must then come out of the boxes themselves."""

import pytest

from spotwright.domain.workload import Strategy
from spotwright.planner.branch_and_bound import Found, Incumbent, search
from spotwright.planner.problem import Watch
from spotwright.planner.solve import contexts_of, spaces_of
from tests.planner.box_count import BoxCount
from tests.planner.random_problems import Drawn, draw

GAP_FRACTION = 1e-3
MOST_BOXES = 5_000
STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]
SEEDS = range(66_000, 66_030)


def searched(drawn: Drawn) -> tuple[Incumbent, Found]:
    incumbent = Incumbent()
    contexts, _ = contexts_of(drawn.problem, drawn.objective, [], Watch())
    found = search(
        spaces_of(contexts),
        incumbent,
        gap_fraction=GAP_FRACTION,
        watch=Watch(stopped=BoxCount(MOST_BOXES).stopped),
        polish=lambda context, relaxed: None,
    )
    return incumbent, found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_optimum_comes_out_of_the_boxes_alone(strategy: Strategy) -> None:
    for seed in SEEDS:
        drawn = draw(strategy, seed)
        goal = drawn.problem.job.goal
        best = drawn.fleets.best(
            drawn.objective, deadline_s=goal.deadline_s, budget_usd=goal.budget_usd
        )
        incumbent, found = searched(drawn)

        assert found.complete, seed
        assert (best is None) == (incumbent.counts is None), seed
        if best is not None:
            optimum = best.value(drawn.objective)
            assert incumbent.objective <= optimum * (1 + GAP_FRACTION) * (1 + 1e-9), seed
            assert found.bound <= optimum * (1 + 1e-9), seed
