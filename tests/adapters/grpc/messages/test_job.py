import math
from dataclasses import replace

import pytest

from spotwright.adapters.grpc.messages.job import (
    event_from_proto,
    event_to_proto,
    job_from_proto,
    job_to_proto,
    report_from_proto,
    report_to_proto,
)
from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.job_run import Event, Forecast, JobCourse, JobState, Progress, Steer
from spotwright.domain.ledger import RentedPool
from spotwright.domain.live_term import LiveTerm
from spotwright.domain.offer import Market, Pool
from spotwright.domain.planned_run import PlannedNodes, PlannedPool, PlannedRun
from spotwright.domain.prediction import Interval, LinkRates, StepTerms
from spotwright.domain.workload import Strategy
from spotwright.usecases.job_report import JobReport, ReportLine
from spotwright.v1 import catalog_pb2
from tests.adapters.grpc.planning.example_plan import plan_message
from tests.usecases.example_job_run import START, after, job_run

PENDING = job_run()
RUNNING = replace(
    job_run(state=JobState.RUNNING),
    update_time=after(0.123456),
    progress=Progress(samples=0.0, loss=-1.5),
    progress_fraction=0.0,
    controller="a",
)
ENDED = replace(RUNNING, state=JobState.STOPPED, end_time=after(60), progress_fraction=None)

STEERED = replace(
    RUNNING,
    course=JobCourse(
        steer=Steer.WRITE,
        first_plan_id="plan-0",
        spent_usd=0.0,
        forecast=Forecast(duration_s=Interval(1, 2, 3), cost_usd=Interval(0.0, 0.5, 1.0)),
    ),
)
UNPRICED = replace(
    RUNNING, course=JobCourse(forecast=Forecast(duration_s=Interval(0, 0, 0), cost_usd=None))
)


@pytest.mark.parametrize("job", [PENDING, RUNNING, ENDED, STEERED, UNPRICED])
def test_a_job_comes_back_as_it_was_and_nothing_unknown_becomes_zero(job: object) -> None:
    assert isinstance(job, type(PENDING))
    assert job_from_proto(job_to_proto(job)) == job


def test_an_event_comes_back_as_it_was() -> None:
    event = Event(time=START, kind="agent-back", text="back", facts={"a": "1"}, sequence=7)

    assert event_from_proto(event_to_proto(event)) == event


def test_a_report_comes_back_as_it_was() -> None:
    lines = (
        ReportLine(figure="duration_s", planned=0.0, measured=None),
        ReportLine(figure="elapsed_s", planned=None, measured=0.0),
    )
    terms = (
        LiveTerm(instance_type="g5.xlarge", term="compute", planned_s=0.0, measured_s=0.5),
        LiveTerm(
            instance_type="g5.xlarge",
            term="network",
            planned_s=1.0,
            planned_mbps=25_000.0,
            measured_mbps=0.0,
            is_bottleneck=True,
            text="slow",
        ),
    )
    report = JobReport(job=RUNNING, lines=lines, terms=terms)

    assert report_from_proto(report_to_proto(report)) == report


def test_what_a_plan_promises_is_read_from_its_document() -> None:
    planned = read_planned_run(plan_message().SerializeToString())

    worker = Pool("g5.xlarge", "use1-az4", Market.SPOT)
    server = Pool("m5.xlarge", "use1-az4", Market.ON_DEMAND)
    assert planned.step_s == pytest.approx(3.6)
    assert replace(planned, step_s=3.6) == PlannedRun(
        target=Target(kind=TargetKind.SAMPLES, value=100_000.0),
        steps_to_goal=1_000.0,
        samples_to_goal=100_000.0,
        duration_s=3600.0,
        cost_usd=3.60,
        rent_usd_per_hour=3.60,
        samples_per_s=27.8,
        step_s=3.6,
        deadline_s=7200.0,
        strategy=Strategy.ASP_PS,
        pools=(
            PlannedPool(
                instance_type="g5.xlarge",
                node_count=3,
                step_s=3.6,
                terms=StepTerms(compute_s=2.6, network_s=1.0),
                rates=LinkRates(network_mbps=2_500.0),
            ),
        ),
        nodes=(
            PlannedNodes(
                role="worker",
                pool=RentedPool("g5.xlarge", "use1-az4", "spot"),
                node_count=3,
                price_usd_per_hour=1.0,
            ),
            PlannedNodes(
                role="ps",
                pool=RentedPool("m5.xlarge", "use1-az4", "on-demand"),
                node_count=1,
                price_usd_per_hour=0.6,
            ),
        ),
        workers={worker: 3},
        servers={server: 1},
        prices_usd_per_hour={worker: 1.0, server: 0.6},
        duration_interval_s=Interval(3000.0, 3600.0, 4200.0),
    )


def test_pools_are_by_instance_type_and_functions_have_none() -> None:
    plan = plan_message()
    other = plan.prediction.groups.add()
    other.CopyFrom(plan.prediction.groups[0])
    other.group.node_count, other.step_s, other.terms.network_s = 1, 4.0, 1.4
    (pool,) = read_planned_run(plan.SerializeToString()).pools

    assert pool.node_count == 4
    assert pool.step_s == pytest.approx((3 * 3.6 + 4.0) / 4)
    assert pool.terms.network_s == pytest.approx((3 * 1.0 + 1.4) / 4)
    for group in plan.prediction.groups:
        group.ClearField("group")
    assert read_planned_run(plan.SerializeToString()).pools == ()


def test_what_a_plan_does_not_say_is_not_known() -> None:
    plan = plan_message()
    plan.ClearField("target")
    plan.ClearField("deadline_s")
    plan.prediction.fleet.nodes[1].ClearField("offer")
    planned = read_planned_run(plan.SerializeToString())

    assert (planned.target, planned.deadline_s, planned.rent_usd_per_hour) == (None, None, None)
    assert [nodes.role for nodes in planned.nodes] == ["worker"]
    assert planned.nodes[0].price_usd_per_hour == 1.0


def test_functions_are_billed_by_use_and_have_no_rent() -> None:
    plan = plan_message()
    plan.prediction.fleet.functions.function_count = 8

    assert read_planned_run(plan.SerializeToString()).rent_usd_per_hour is None


def test_the_planned_step_is_the_mean_over_steps_not_over_workers() -> None:
    plan = plan_message()
    slow = plan.prediction.groups.add()
    slow.CopyFrom(plan.prediction.groups[0])
    slow.step_s = 7.2

    # In 7.2 s the three fast workers make six steps and the three slow ones three.
    assert read_planned_run(plan.SerializeToString()).step_s == pytest.approx(
        (6 * 3.6 + 3 * 7.2) / 9
    )


def test_the_pools_of_a_plan_are_read_with_their_prices_and_its_interruptions() -> None:
    plan = plan_message()
    worker, server = plan.prediction.fleet.nodes
    for node, zone in ((worker, "use1-az4"), (server, "use1-az6")):
        node.offer.zone, node.offer.market = zone, catalog_pb2.MARKET_SPOT
    plan.prediction.uninterrupted_probability = math.exp(-0.25)

    planned = read_planned_run(plan.SerializeToString())

    workers, servers = (
        Pool("g5.xlarge", "use1-az4", Market.SPOT),
        Pool("m5.xlarge", "use1-az6", Market.SPOT),
    )
    assert (planned.workers, planned.servers) == ({workers: 3}, {servers: 1})
    assert planned.prices_usd_per_hour == {workers: 1.0, servers: 0.6}
    assert planned.interruptions_per_hour == pytest.approx(0.25)
