"""A study of ten hours on one spot node that flickers."""

from spotwright.simulator.conditions import Conditions
from spotwright.simulator.draw import TracedWindows
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.study import Study
from spotwright.simulator.two_fleets import two_fleets
from spotwright.usecases.fleet_choices import FleetChoices
from tests.simulator.small_market import hours, job_of, market_of, spot

FLICKERING = hours(*((k * 1.7, float(k % 2 == 0)) for k in range(50)), end=85.0)


def small_study() -> Study:
    """Return a study whose runs end in time."""
    job = job_of()
    choices = FleetChoices(job, market_of())
    return Study(
        job=job,
        source=market_of(),
        draw=TracedWindows(trace=MarketTrace(capacity={spot(): FLICKERING}), seed=3),
        fleets=two_fleets(choices, planned={spot(): 1}, servers={}),
        planned_s=36_000.0,
        conditions=Conditions(notice_s=0.0, checkpoint_every_s=10.0),
        seed=3,
    )
