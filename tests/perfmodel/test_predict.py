"""The whole prediction, on the example jobs with the bundled market and on small made-up fleets."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.errors import MemoryDoesNotFitError, OutsideFittedRangeError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import JobSpec, TargetKind
from spotwright.domain.prediction import Prediction
from spotwright.domain.workload import (
    ComputeProfile,
    GlobalBatch,
    InputPipeline,
    MemoryUse,
    SpotdnnLoss,
    Strategy,
    Workload,
)
from spotwright.perfmodel.predict import predict
from spotwright.usecases.resolve_fleet import resolve_fleet
from tests.adapters.jobfile.example_jobs import EXAMPLES, JOB_FILES
from tests.perfmodel.example_clusters import (
    fleet_of,
    gpu_facts,
    host,
    job,
    model,
    nodes,
    offered,
    workload,
)
from tests.usecases.example_job import catalog

FLEETS = {
    "bert.yaml": ["g5.12xlarge*2 + g6.12xlarge/spot", "g5.xlarge"],
    "llama-zero3.yaml": ["p4de.24xlarge*2/spot", "p4d.24xlarge*4"],
    "mobilenet-serverless.yaml": ["lambda:2560*8", "lambda:1024*1 + ps=c5n.2xlarge"],
    "resnet50.yaml": ["g4dn.12xlarge:4*2 + g4dn.12xlarge:2", "g5.xlarge*3/spot + g6.xlarge"],
    "text-cnn-bsp.yaml": ["g4dn.xlarge*4 + g6.xlarge*2/spot", "g6.xlarge + ps=c5n.4xlarge*2"],
    "wide-resnet-asp.yaml": ["g4dn.xlarge*3 + g5.xlarge*2/spot", "g6.xlarge*8"],
    "papers/esperberto.yaml": ["p3.2xlarge*2 + g4dn.4xlarge*2"],
    "papers/inception-v3.yaml": ["p3.2xlarge + p2.8xlarge"],
    "papers/resnet110.yaml": ["p3.2xlarge*2 + g4dn.12xlarge", "g3.4xlarge*10/spot"],
    "papers/vgg19.yaml": ["p3.2xlarge*4 + g4dn.4xlarge*4"],
}
CASES = [(name, text) for name, texts in FLEETS.items() for text in texts]
STRATEGIES = [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE]


@cache
def example(name: str) -> JobSpec:
    return read_job_file(EXAMPLES / name).spec


@cache
def resolved(name: str, text: str) -> Fleet:
    return resolve_fleet(text, example(name), catalog())


@cache
def predicted(name: str, text: str) -> Prediction:
    return predict(example(name), resolved(name, text), catalog().gpu)


def on_demand(strategy: Strategy, *groups: NodeGroup) -> Fleet:
    server = offered(host("m.server", None), usd=0.2, role=Role.PS)
    return Fleet(nodes=(*groups, server) if strategy.uses_parameter_servers else groups)


def repriced(fleet: Fleet, factor: float) -> Fleet:
    def group(g: NodeGroup) -> NodeGroup:
        assert g.offer is not None
        price = g.offer.price_usd_per_hour * factor
        return replace(g, offer=replace(g.offer, price_usd_per_hour=price))

    return replace(fleet, nodes=tuple(group(g) for g in fleet.nodes))


def mixed_work(strategy: Strategy, *, whole: bool = False) -> Workload:
    measured = {
        "Small": ComputeProfile(fixed_s=0.02, per_sample_s=0.006, relative_sd=0.02),
        "Large": ComputeProfile(fixed_s=0.03, per_sample_s=0.002, relative_sd=0.10),
    }
    changes = {"batch": GlobalBatch(sample_count=512, max_per_gpu_count=32)} if whole else {}
    feed = InputPipeline(prep_samples_per_s_per_vcpu=50)
    return workload(strategy, compute=measured, input=feed, **changes)


HOSTS = [
    host(gpu_count=4.0),
    host("g.slow", network_baseline_mbps=1_500),
    host("g.large", "Large", gpu_count=8.0, nvlink_mbps=1e6, efa_interface_count=1),
]


def test_every_example_is_predicted_here() -> None:
    assert {str(file.relative_to(EXAMPLES)) for file in JOB_FILES} == set(FLEETS)


@pytest.mark.parametrize(("name", "text"), CASES)
def test_the_terms_of_every_group_add_up_to_its_step(name: str, text: str) -> None:
    for group in predicted(name, text).groups:
        assert group.terms.total_s == pytest.approx(group.step_s)
        assert min(group.terms.by_name().values()) >= 0


@pytest.mark.parametrize(("name", "text"), CASES)
def test_time_and_money_follow_from_the_figures_shown(name: str, text: str) -> None:
    found = predicted(name, text)
    assert found.duration_s is not None
    assert found.cost_usd is not None
    assert found.steps_to_goal is not None
    per_hour, functions = found.fleet.usd_per_hour, found.fleet.functions
    assert per_hour is not None
    if functions is not None:
        per_hour += functions.memory_mb / 1024 * functions.function_count * 1.66667e-5 * 3600

    assert found.cost_usd.mid == pytest.approx(per_hour * found.duration_s.mid / 3600)
    assert found.weighted_batch == pytest.approx(found.samples_per_s * found.iteration_s.mid)
    assert found.duration_s.mid >= found.steps_to_goal * found.iteration_s.mid * (1 - 1e-12)
    assert found.duration_s.mid == pytest.approx(
        found.steps_to_goal * found.iteration_s.mid, rel=0.1
    )
    assert found.duration_p95_s == found.duration_s.high


@pytest.mark.parametrize(("name", "text"), CASES)
def test_speeds_agree_with_each_other(name: str, text: str) -> None:
    found = predicted(name, text)

    assert sum(g.samples_per_s for g in found.groups) == pytest.approx(found.samples_per_s)
    if found.strategy is Strategy.ASP_PS:
        assert found.cluster_steps_per_s == pytest.approx(1 / found.iteration_s.mid)
    for group in found.groups:
        assert group.group is None or group.memory_gib is not None
        assert (group.memory_gib or 0.0) <= (group.memory_limit_gib or math.inf)


@pytest.mark.parametrize(("name", "text"), CASES)
def test_the_same_question_has_the_same_answer(name: str, text: str) -> None:
    again = predict(example(name), resolve_fleet(text, example(name), catalog()), catalog().gpu)

    assert again == predicted(name, text)


@pytest.mark.parametrize(("name", "text"), [case for case in CASES if "serverless" not in case[0]])
def test_doubling_all_prices_doubles_the_cost_and_nothing_else(name: str, text: str) -> None:
    once = predicted(name, text)
    twice = predict(example(name), repriced(once.fleet, 2.0), catalog().gpu)
    assert once.cost_usd is not None
    assert twice.cost_usd is not None

    rented = once.cost_usd.shifted(-once.traffic_usd)
    expected = rented.scaled(2.0).shifted(once.traffic_usd)
    assert astuple(twice.cost_usd) == pytest.approx(astuple(expected))
    assert twice.traffic_usd == once.traffic_usd
    assert (twice.duration_s, twice.iteration_s) == (once.duration_s, once.iteration_s)


@pytest.mark.parametrize(
    ("strategy", "whole"),
    [
        (Strategy.ASP_PS, False),  # asynchronous workers have no whole batch to split
        (Strategy.BSP_PS, False),
        (Strategy.BSP_PS, True),
        (Strategy.ALLREDUCE, False),
        (Strategy.ALLREDUCE, True),
    ],
)
def test_many_fleets_at_once_are_the_fleets_one_by_one(strategy: Strategy, whole: bool) -> None:
    work = mixed_work(strategy, whole=whole)
    groups = [nodes(box) for box in HOSTS]
    built = model(work, groups)

    @settings(max_examples=30)
    @given(st.lists(st.tuples(*[st.integers(0, 12)] * 3).filter(any), min_size=1, max_size=6))
    def same(fleets: Sequence[tuple[int, int, int]]) -> None:
        together = built.speed(np.array(fleets, float).T)
        for i, fleet in enumerate(fleets):
            alone = built.speed(fleet_of(*fleet))
            for figure in ("iteration_s", "samples_per_s", "communication_fraction"):
                found, expected = getattr(together, figure)[i], getattr(alone, figure)[0]
                assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert together.step_s[:, i] == pytest.approx(alone.step_s[:, 0], rel=1e-12)

    same()


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(fleet=st.tuples(*[st.integers(0, 12)] * 3).filter(any))
def test_candidates_that_were_not_chosen_change_nothing(
    strategy: Strategy, fleet: tuple[int, int, int]
) -> None:
    work = mixed_work(strategy)
    chosen = [(box, n) for box, n in zip(HOSTS, fleet, strict=True) if n]
    only = model(work, [nodes(box) for box, _ in chosen])

    found = model(work, [nodes(box) for box in HOSTS]).speed(fleet_of(*fleet)).iteration_s[0]

    expected = only.speed(fleet_of(*(n for _, n in chosen))).iteration_s[0]
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_terms_explain_the_speed_that_is_computed(strategy: Strategy) -> None:
    work = mixed_work(strategy)
    built = model(work, [nodes(box) for box in HOSTS])

    for fleet in ((1, 0, 0), (4, 3, 2), (0, 9, 1)):
        steps = built.speed(fleet_of(*fleet)).step_s[:, 0]
        terms = [t.total_s for t in built.terms(fleet_of(*fleet)[:, 0])]
        present = np.array(fleet) > 0
        assert np.array(terms)[present] == pytest.approx(steps[present])


def test_a_model_too_large_for_the_gpu_is_refused_with_the_figure() -> None:
    work = workload(Strategy.ALLREDUCE, memory=MemoryUse(activation_bytes_per_sample=1e9))

    with pytest.raises(MemoryDoesNotFitError, match=r"needs 31\.1 GiB on Small .* has 16\.0 GiB"):
        predict(job(work), Fleet(nodes=(offered(host(), 2),)), gpu_facts)


def test_a_retired_type_is_predicted_when_it_is_named() -> None:
    found = predicted("papers/resnet110.yaml", "g3.4xlarge*10/spot")

    assert found.fleet.workers[0].instance_type.retired
    assert found.cost_usd is not None


def test_a_loss_law_is_not_asked_about_a_goal_in_samples() -> None:
    law = SpotdnnLoss(c1=9, c2=-0.2, c3=2500, c4=0.2, c5=0.5, batch_range=(1000, 2000))
    work = workload(Strategy.ASP_PS, convergence=law)
    fleet = on_demand(Strategy.ASP_PS, offered(host(), 2))

    found = predict(job(work, TargetKind.SAMPLES, 3200), fleet, gpu_facts)

    assert found.steps_to_goal == pytest.approx(100)
    with pytest.raises(OutsideFittedRangeError, match="the weighted batch would be 32"):
        predict(job(work, TargetKind.LOSS, 0.6), fleet, gpu_facts)


def test_a_fleet_that_nobody_rents_out_has_a_time_and_no_cost() -> None:
    found = predict(job(workload(Strategy.ALLREDUCE)), Fleet(nodes=(nodes(host(), 2),)), gpu_facts)

    assert found.duration_s is not None
    assert found.cost_usd is None
    assert found.notes == ("no price for g.small: the cost is not known",)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_spot_nodes_make_the_run_longer_and_less_sure(strategy: Strategy) -> None:
    asked = job(workload(strategy), value=1e6)
    calm, shaky = (
        predict(asked, on_demand(strategy, offered(host(), 8, interrupted=share)), gpu_facts)
        for share in (None, 0.3)
    )
    assert calm.duration_s is not None
    assert shaky.duration_s is not None

    assert shaky.duration_s.mid > calm.duration_s.mid
    assert shaky.duration_s.high / shaky.duration_s.mid > calm.duration_s.high / calm.duration_s.mid
    assert shaky.iteration_s == calm.iteration_s
    assert "interruptions expected" in shaky.notes[0]


@pytest.mark.parametrize(("share", "chance"), [(None, 1.0), (0.9, 0.6)])
def test_the_deadline_is_missed_by_interruptions_and_by_the_models_own_error(
    share: float | None, chance: float
) -> None:
    asked = job(workload(Strategy.ALLREDUCE), value=1e6)
    fleet = on_demand(Strategy.ALLREDUCE, offered(host(), 8, interrupted=share))
    free = predict(asked, fleet, gpu_facts)
    close = replace(asked.goal, deadline_s=free.duration_s.mid * 1.0001)

    found = predict(replace(asked, goal=close), fleet, gpu_facts)

    assert (free.deadline_probability, free.overall_deadline_probability) == (None, None)
    assert found.deadline_probability == pytest.approx(chance, abs=0.1)
    assert found.overall_deadline_probability == pytest.approx(0.5, abs=0.1)


def test_a_step_that_waits_for_its_samples_is_bound_by_input() -> None:
    spec = example("resnet50.yaml")
    assert spec.workload.input is not None
    slow = replace(spec.workload.input, prep_samples_per_s_per_vcpu=10.0)
    starved = replace(spec, workload=replace(spec.workload, input=slow))

    found = predict(starved, resolve_fleet("g4dn.12xlarge*4", starved, catalog()), catalog().gpu)

    assert found.iteration_s.mid == pytest.approx(4 * 128 / (48 * 10))
    assert found.bottleneck == "input_stall"
