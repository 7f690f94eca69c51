from pathlib import Path

from spotwright.adapters.jobfile.read import parse_job
from spotwright.usecases.fleet_choices import FleetChoices, Question
from tests.usecases.example_job import catalog

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
