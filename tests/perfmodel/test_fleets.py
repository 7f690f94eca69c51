"""The search's view of many fleets and the explanation of one must be the same figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright.domain.errors import OutsideFittedRangeError, UnreachableTargetError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.workload import (
    Contention,
    CynthiaLoss,
    ParameterServing,
    SpotdnnLoss,
    Strategy,
)
from spotwright.perfmodel.fleets import FleetFigures, evaluate_fleets
from spotwright.perfmodel.predict import predict
from tests.perfmodel.example_clusters import gpu_facts, host, job, model, offered, workload

LAW = SpotdnnLoss(c1=90, c2=-2.0, c3=2500, c4=0.2, c5=0.5, batch_range=(40, 100))
SERVER = offered(host("m.server", None), usd=0.2, role=Role.PS)
BOXES = [
    (host(gpu_count=4.0), 3.5),
    (host("g.slow", network_baseline_mbps=1_500), 0.4),
    (host("g.small2", network_baseline_mbps=25_000, efa_interface_count=1), 1.1),
]
GROUPS = [offered(box, usd=usd) for box, usd in BOXES]
PRICES = np.array([usd for _, usd in BOXES])
counts = st.tuples(*[st.integers(0, 10)] * 3).filter(any)


def asked(strategy: Strategy, contention: Contention = Contention.QUEUEING) -> JobSpec:
    serving = ParameterServing(
        contention=contention, requested_mbps=1_136, contention_slope=0.2, contention_offset=-0.2
    )
    servers = serving if strategy.uses_parameter_servers else None
    law = LAW if strategy is Strategy.ASP_PS else CynthiaLoss(k0=900, k1=0.5)
    work = workload(strategy, parameter_serving=servers, convergence=law)
    return job(work, TargetKind.LOSS, 0.6)


def evaluated(spec: JobSpec, fleets: np.ndarray) -> FleetFigures:
    with_servers = spec.workload.strategy.uses_parameter_servers
    built = model(spec.workload, GROUPS, [SERVER] if with_servers else [])
    usd = 0.2 if with_servers else 0.0
    return evaluate_fleets(spec, built, fleets, PRICES, servers_usd_per_hour=usd)


def fleet(spec: JobSpec, numbers: tuple[int, ...]) -> Fleet:
    chosen: list[NodeGroup] = [
        replace(group, node_count=n) for group, n in zip(GROUPS, numbers, strict=True) if n
    ]
    servers = [SERVER] if spec.workload.strategy.uses_parameter_servers else []
    return Fleet(nodes=tuple(chosen + servers))


@pytest.mark.parametrize(
    ("strategy", "contention"),
    [(Strategy.ASP_PS, rule) for rule in Contention]
    + [(Strategy.BSP_PS, Contention.QUEUEING), (Strategy.ALLREDUCE, Contention.QUEUEING)],
)
@settings(max_examples=40)
@given(numbers=counts)
def test_the_figures_are_those_of_the_prediction(
    strategy: Strategy, contention: Contention, numbers: tuple[int, ...]
) -> None:
    spec = asked(strategy, contention)
    found = evaluated(spec, np.array(numbers, float)[:, None])

    if not found.in_fitted_range[0]:
        with pytest.raises(OutsideFittedRangeError):
            predict(spec, fleet(spec, numbers), gpu_facts)
        return
    one = predict(spec, fleet(spec, numbers), gpu_facts)
    assert one.duration_s is not None
    assert one.cost_usd is not None
    expected = {
        "iteration_s": one.iteration_s.mid,
        "samples_per_s": one.samples_per_s,
        "weighted_batch": one.weighted_batch,
        "coefficient": one.convergence_coefficient or 0.0,
        "updates": one.steps_to_goal,
        "duration_s": one.duration_s.mid,
        "cost_usd": one.cost_usd.mid,
    }
    for figure, value in expected.items():
        assert getattr(found, figure)[0] == pytest.approx(value, rel=1e-9, abs=1e-7), figure


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE])
def test_chunks_leave_no_seam(strategy: Strategy) -> None:
    spec, fleets = asked(strategy), np.random.default_rng(2).integers(0, 11, (3, 9_001)) + 0.0
    fleets[0] += fleets.sum(axis=0) == 0

    whole = evaluated(spec, fleets)

    for i in (0, 4095, 4096, 8191, 8192, 9000):
        alone = evaluated(spec, fleets[:, i : i + 1])
        assert whole.cost_usd[i] == pytest.approx(alone.cost_usd[0], rel=1e-12)
        assert whole.duration_s[i] == pytest.approx(alone.duration_s[0], rel=1e-12)
        assert whole.in_fitted_range[i] == alone.in_fitted_range[0]


def test_whole_numbers_of_any_kind_are_counts() -> None:
    spec = asked(Strategy.ASP_PS)
    fleets = np.array([[1, 2], [0, 3], [4, 0]])

    as_integers, as_floats = evaluated(spec, fleets), evaluated(spec, fleets + 0.0)

    assert (as_integers.cost_usd == as_floats.cost_usd).all()


def test_a_goal_below_the_floor_is_refused_for_all_fleets() -> None:
    spec = asked(Strategy.ASP_PS)
    goal = replace(spec.goal, target=replace(spec.goal.target, value=0.4))

    with pytest.raises(UnreachableTargetError):
        evaluated(replace(spec, goal=goal), np.ones((3, 5)))
