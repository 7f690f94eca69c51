"""The contexts of drawn problems, as `solve` makes them."""

from spotwright.planner.context import Context
from spotwright.planner.placements import sites
from tests.planner.random_problems import Drawn


def contexts(drawn: Drawn) -> list[Context]:
    problem = drawn.problem
    found = [
        Context(
            problem.job,
            site.workers,
            site.servers,
            objective=drawn.objective,
            running=problem.running,
        )
        for site in sites(problem)
        if site.workers
    ]
    return [context for context in found if context.has_room]
