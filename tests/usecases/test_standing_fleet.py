from collections.abc import Callable
from dataclasses import replace

import pytest

from spotwright.domain.job import TargetKind
from spotwright.domain.job_run import Forecast, JobCourse, JobState
from spotwright.domain.offer import Market, Pool
from spotwright.domain.planned_run import PlannedPool, PlannedRun
from spotwright.domain.prediction import LinkRates, StepTerms
from spotwright.domain.steering import JobView, NodeState, NodeView
from spotwright.domain.telemetry import AgentFacts
from spotwright.domain.workload import Strategy
from spotwright.usecases.forecast_job import forecast_job
from spotwright.usecases.look_at_fleet import Heard, Moment, Promise, look_at_fleet
from spotwright.usecases.standing_fleet import Meters, StandingPace, planned_share
from spotwright.usecases.steering_notes import SteeringNotes
from spotwright.usecases.steering_rules import SteeringRules
from tests.usecases.example_job_run import after, agent_record, job_run, planned_run

PER_S = 27.8 / 100_000  # of the goal, as planned
FAST, SLOW = (Pool(name, "use1-az4", Market.SPOT) for name in ("fast", "slow"))
RUNNING = job_run(state=JobState.RUNNING)
COURSE = JobCourse(spent_usd=1.0, spent_until=after(1800))


def planned(kind: TargetKind = TargetKind.SAMPLES, *, strategy: Strategy) -> PlannedRun:
    """Return a plan of four fast nodes and four that are half as fast."""
    pools = tuple(
        PlannedPool(
            instance_type=pool.instance_type,
            node_count=4,
            step_s=step_s,
            terms=StepTerms(compute_s=step_s),
            rates=LinkRates(),
        )
        for pool, step_s in ((FAST, 1.0), (SLOW, 2.0))
    )
    return replace(planned_run(kind), strategy=strategy, pools=pools, workers={FAST: 4, SLOW: 4})


def view(fast: int, slow: int, *, starting: int = 0) -> JobView:
    states = [NodeState.TRAINING] * (fast + slow) + [NodeState.STARTING] * starting
    pools = [FAST] * fast + [SLOW] * slow + [FAST] * starting
    nodes = tuple(
        NodeView(node_id=str(number), pool=pool, state=state, ready_s=0.0)
        for number, (pool, state) in enumerate(zip(pools, states, strict=True))
    )
    return JobView(
        time_s=0.0, done_fraction=0.0, spent_usd=0.0, nodes=nodes, asked={FAST: 4, SLOW: 4}
    )


@pytest.mark.parametrize(
    ("seen", "strategy", "kind", "share"),
    [
        (view(4, 4), Strategy.ASP_PS, TargetKind.STEPS, 1),
        (view(1, 4), Strategy.ASP_PS, TargetKind.STEPS, 3 / 6),
        (view(1, 4, starting=3), Strategy.ASP_PS, TargetKind.STEPS, 3 / 6),
        (view(1, 4), Strategy.BSP_PS, TargetKind.EPOCHS, 5 / 8),
        (view(1, 4), Strategy.ALLREDUCE, TargetKind.SAMPLES, 5 / 8),
        (view(1, 4), Strategy.BSP_PS, TargetKind.STEPS, 1),
        (view(0, 0), Strategy.ASP_PS, TargetKind.LOSS, 0),
    ],
)
def test_nodes_have_the_share_of_the_speed_that_the_plan_gives_them(
    seen: JobView, strategy: Strategy, kind: TargetKind, share: float
) -> None:
    assert planned_share(seen, planned(kind, strategy=strategy)) == pytest.approx(share)


def paces(
    share_at: Callable[[int], float], pace_at: Callable[[int], float], *, until_s: int
) -> list[float | None]:
    """Return what is told in each look, five seconds apart."""
    meter, done, found = StandingPace(), 0.0, []
    for seconds in range(0, until_s, 5):
        done += 5 * PER_S * pace_at(seconds)
        job = replace(RUNNING, progress_fraction=done)
        found.append(
            meter.measured(job, planned_run(), now=after(seconds), share=share_at(seconds))
        )
    return found


def test_after_a_loss_the_pace_is_that_of_the_nodes_which_stayed_then_what_is_measured() -> None:
    found = paces(
        lambda s: 1.0 if s < 430 else 3 / 8,  # 30 s of silence
        lambda s: 0.8 if s < 400 else 0.36,
        until_s=600,
    )

    assert found[395 // 5] == pytest.approx(0.8)
    assert found[430 // 5] == pytest.approx(0.8 * 3 / 8)
    assert found[540 // 5] == pytest.approx(0.8 * 3 / 8)
    assert found[595 // 5] == pytest.approx(0.36)


def test_nodes_that_come_add_their_share_to_what_was_measured() -> None:
    found = paces(
        lambda s: 3 / 8 if s < 300 else 6 / 8,
        lambda s: 0.3 if s < 300 else 0.6,
        until_s=310,
    )

    assert found[0] == pytest.approx(3 / 8)
    assert found[-1] == pytest.approx(0.6)


def test_a_fleet_as_planned_has_no_pace_until_one_is_measured() -> None:
    found = paces(lambda _: 1.0, lambda _: 1.0, until_s=200)

    assert found[100 // 5] is None
    assert found[-1] == pytest.approx(1.0)


def test_of_a_job_without_nodes_no_end_is_expected() -> None:
    [*_, pace] = paces(lambda s: 1.0 if s < 300 else 0.0, lambda _: 1.0, until_s=310)

    assert pace == 0.0
    assert forecast_job(RUNNING, planned_run(), now=after(310), pace_factor=pace) is None


def test_a_new_plan_begins_with_its_own_speed() -> None:
    meter = StandingPace()
    for seconds in range(0, 300, 5):
        job = replace(RUNNING, progress_fraction=0.5 * seconds * PER_S)
        meter.measured(job, planned_run(), now=after(seconds), share=1.0)
    job = replace(RUNNING, progress_fraction=0.1, plan_id="plan-2")

    assert meter.measured(job, planned_run(), now=after(300), share=1.0) is None


def _placed(facts: AgentFacts, pool: Pool) -> AgentFacts:
    return replace(facts, instance_type=pool.instance_type, zone=pool.zone, market=str(pool.market))


def looked(names: str) -> Forecast:
    """Return what a look half an hour after the start, half of the work done, expects."""
    plan = replace(planned_run(), workers={FAST: 2}, prices_usd_per_hour={FAST: 1.8})
    agents = [agent_record(name, last_seen=after(1800)) for name in names]
    agents = [replace(agent, facts=_placed(agent.facts, FAST)) for agent in agents]
    found = look_at_fleet(
        replace(RUNNING, progress_fraction=0.5, course=COURSE),
        Promise(plan, plan),
        Heard(agents, {}),
        notes=SteeringNotes(),
        meters=Meters(),
        rules=SteeringRules(),
        moment=Moment(after(1800), after(0)),
    )
    assert found.keep
    assert found.course.forecast is not None
    return found.course.forecast


@pytest.mark.parametrize(
    ("names", "hours_left", "usd_per_hour"),
    [("ab", 0.5, 3.6), ("a", 1.0, 1.8), ("", 0.5, 3.6)],  # the last: hosts are not known
)
def test_a_job_that_nobody_steers_is_forecast_with_the_nodes_that_are_there(
    names: str, hours_left: float, usd_per_hour: float
) -> None:
    found = looked(names)

    assert found.duration_s.mid == pytest.approx(1800 + 3600 * hours_left)
    assert found.cost_usd is not None
    assert found.cost_usd.mid == pytest.approx(1.0 + usd_per_hour * hours_left)
