from pathlib import Path

from spotwright.adapters.jobfile.read import parse_job
from spotwright.domain.offer import Pool
from spotwright.usecases.fleet_choices import Choice, FleetChoices, Question
from tests.usecases.example_job import catalog
from tests.usecases.steered_job import HOUR, ON_DEMAND, OTHER_SPOT, SPOT, steered_job

LLAMA = Path(__file__).parents[2] / "examples" / "llama-zero3.yaml"


def test_a_search_that_may_be_shorter_ends_with_a_fleet_that_is_dearer_and_in_time() -> None:
    job = parse_job(LLAMA.read_text(encoding="utf-8"), path=LLAMA.name).of_model(None)
    assert job.goal.deadline_s is not None
    question = Question(deadline_s=job.goal.deadline_s)

    usual = FleetChoices(job, catalog()).best(question)
    short = FleetChoices(job, catalog(), most_boxes=1).best(question)

    assert usual is not None
    assert short is not None
    assert usual.cost_usd < short.cost_usd < 1.05 * usual.cost_usd
    assert short.duration_s <= job.goal.deadline_s


def chosen(most_by_pool: dict[Pool, int], *, max_nodes: int = 4) -> Choice:
    choices = FleetChoices(steered_job(max_nodes=max_nodes), catalog())
    found = choices.best(Question(deadline_s=11 * HOUR, most_by_pool=most_by_pool))
    assert found is not None
    return found


def test_pools_that_the_best_fleet_does_not_need_may_be_closed() -> None:
    best = chosen({})
    assert SPOT in best.workers
    assert OTHER_SPOT not in best.workers
    assert chosen({OTHER_SPOT: 0, ON_DEMAND: 0}) == best
    assert chosen({SPOT: best.workers[SPOT]}) == best


def test_no_more_nodes_are_chosen_than_pools_give() -> None:
    best, count = chosen({}), chosen({}).workers[SPOT]
    for most in range(count):
        found = chosen({SPOT: most, OTHER_SPOT: 1})
        assert found.workers.get(SPOT, 0) <= most
        assert found.workers.get(OTHER_SPOT, 0) <= 1
        assert found.cost_usd > best.cost_usd
