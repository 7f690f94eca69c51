"""Oracles: the published rows of lambdaDNN, and a run played second by second."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import BadInputError, MissingFactError
from spotwright.domain.fleet import Fleet, FunctionGroup, Role
from spotwright.domain.job import TargetKind
from spotwright.domain.prediction import Prediction
from spotwright.domain.workload import (
    Dataset,
    ModelSize,
    ParameterServing,
    ServerlessLaw,
    Strategy,
    Workload,
)
from spotwright.perfmodel.predict import predict
from spotwright.perfmodel.serverless import lifecycle, local_batch, seconds_per_sample
from tests.perfmodel.example_clusters import gpu_facts, host, job, offered, workload

CNN = ServerlessLaw(
    samples_per_s_per_mb=0.1,
    samples_per_s_offset=-8.8,
    batch_per_function_count=32,
    max_global_batch_count=512,
)
RESNET = ServerlessLaw(
    samples_per_s_per_mb=0.003,
    samples_per_s_offset=11.3,
    batch_per_function_count=128,
    max_global_batch_count=1024,
)


def work(law: ServerlessLaw, *, model_mb: float, samples: float, data_mb: float) -> Workload:
    return workload(
        Strategy.SERVERLESS,
        batch=None,
        serverless=law,
        model=ModelSize(parameter_bytes=model_mb * 1e6),
        dataset=Dataset(sample_count=samples, size_bytes=data_mb * 1e6),
        parameter_serving=ParameterServing(bandwidth_mbps=9_600),
    )


CNN_WORK = work(CNN, model_mb=2, samples=15_000, data_mb=41.1)
RESNET_WORK = work(RESNET, model_mb=98, samples=50_000, data_mb=148)


def predicted(trained: Workload, functions: int, memory_mb: int, epochs: float) -> Prediction:
    server = offered(host("m.server", None), usd=0.0935, role=Role.PS)
    group = FunctionGroup(memory_mb=memory_mb, function_count=functions)
    fleet = Fleet(nodes=(server,), functions=group)
    return predict(job(trained, TargetKind.EPOCHS, epochs), fleet, gpu_facts)


def played_restarts(life_s: int, load_s: int, restart_s: int, training_s: int) -> int:
    """Count restarts tick by tick: each life first loads, then trains."""
    restarts, age, loading, left = 0, 0, load_s, training_s
    while left > 0:
        if age == life_s:
            restarts, age, loading = restarts + 1, 0, restart_s
        age += 1
        if loading > 0:
            loading -= 1
        else:
            left -= 1
    return restarts


def test_the_published_formula_gives_the_published_time_of_the_1dcnn_row() -> None:
    iterations = 15_000 * 5 / (10 * 32)
    published_s = 41.1 / (10 * 115) + iterations * (32 / (0.1 * 1088 - 8.8) + 2 * 2 / 84)

    found = predicted(CNN_WORK, 10, 1088, 5)

    assert found.duration_s is not None
    assert found.duration_s.mid == pytest.approx(published_s)
    assert found.duration_s.mid == pytest.approx(86.2, rel=0.005)


def test_the_published_costs_follow_from_the_time_and_the_prices() -> None:
    found = predicted(RESNET_WORK, 8, 2560, 1)

    assert found.cost_usd is not None
    assert found.duration_s is not None
    per_s = found.cost_usd.mid / found.duration_s.mid

    assert per_s == pytest.approx(2560 / 1024 * 8 * 1.66667e-5 + 0.0935 / 3600)
    assert per_s * 573 == pytest.approx(0.2036, rel=0.012)


@pytest.mark.parametrize(("functions", "batch"), [(1, 32), (16, 32), (17, 512 / 17), (64, 8)])
def test_the_local_batch_shrinks_once_the_global_one_is_full(functions: int, batch: float) -> None:
    assert local_batch(CNN, np.array([float(functions)]))[0] == pytest.approx(batch)


@pytest.mark.parametrize(("functions", "mb_per_s"), [(1, 84), (14, 84), (15, 80), (100, 12)])
def test_the_exchange_is_capped_by_the_function_and_then_by_the_server(
    functions: int, mb_per_s: float
) -> None:
    found = predicted(RESNET_WORK, functions, 3008, 1)

    assert found.groups[0].terms.network_s == pytest.approx(2 * 98 / mb_per_s)
    assert found.groups[0].terms.total_s == pytest.approx(found.iteration_s.mid)


def test_without_a_limit_of_its_own_a_function_gets_its_share_of_the_server() -> None:
    unlimited = replace(RESNET_WORK, serverless=replace(RESNET, function_max_mbps=None))

    found = predicted(unlimited, 4, 3008, 1)

    assert found.groups[0].terms.network_s == pytest.approx(2 * 98 / 300)


@given(
    load_s=st.integers(1, 40),
    resume_s=st.integers(0, 40),
    training_s=st.integers(1, 2000),
    life_s=st.integers(90, 300),
)
def test_restarts_are_those_of_a_run_played_second_by_second(
    load_s: int, resume_s: int, training_s: int, life_s: int
) -> None:
    law = replace(
        CNN,
        storage_mbps_offset=8.0,  # 1 MB/s, so that megabytes are seconds
        timeout_s=life_s + 30.0,
        checkpoint_margin_s=30.0,
        resume_s=float(resume_s),
    )
    timed = work(law, model_mb=2, samples=100, data_mb=load_s)
    half_s = 2 * training_s + 1  # half seconds, so that no life ends just as training does

    found = lifecycle(timed, memory_mb=1024, functions=1, training_s=half_s / 2)

    restart_s = load_s + 2 + resume_s
    assert found.restart_count == played_restarts(2 * life_s, 2 * load_s, 2 * restart_s, half_s)
    assert found.total_s == pytest.approx(load_s + found.restart_count * restart_s, abs=1e-6)


def test_storage_is_read_at_the_rate_of_the_memory_size_up_to_its_limit() -> None:
    law = replace(CNN, storage_mbps_per_mb=0.017824, storage_mbps_offset=128.96)
    stored = work(law, model_mb=2, samples=100, data_mb=100)

    for memory_mb, mbps in ((1024, 147.211776), (10_240, 311.47776), (10**6, 920)):
        found = lifecycle(stored, memory_mb=memory_mb, functions=4, training_s=1.0)
        assert found.load_s == pytest.approx(800 / 4 / mbps)


def test_both_forms_of_the_speed_law_are_read() -> None:
    fitted = replace(CNN, samples_per_s_per_mb=None, s_per_sample=0.01, mb_s_per_sample=20.0)

    assert seconds_per_sample(CNN, 1088) == pytest.approx(0.01)
    assert seconds_per_sample(fitted, 2000) == pytest.approx(0.02)


def test_a_size_at_which_the_law_gives_no_speed_is_refused() -> None:
    with pytest.raises(BadInputError, match="no speed at 64 MB; use more memory"):
        seconds_per_sample(CNN, 64)


def test_a_function_that_never_stops_loading_is_refused() -> None:
    huge = work(CNN, model_mb=2, samples=100, data_mb=1e6)

    with pytest.raises(BadInputError, match="spends its whole 900 s loading"):
        lifecycle(huge, memory_mb=1024, functions=1, training_s=10.0)


def test_a_data_set_of_unknown_size_is_a_missing_fact() -> None:
    unsized = replace(CNN_WORK, dataset=Dataset(sample_count=15_000))

    with pytest.raises(MissingFactError, match=r"add workload.dataset.size"):
        lifecycle(unsized, memory_mb=1024, functions=1, training_s=10.0)


def test_a_long_run_pays_for_its_restarts() -> None:
    short, long = (predicted(CNN_WORK, 10, 1088, epochs) for epochs in (5, 500))
    assert short.duration_s is not None
    assert long.duration_s is not None

    restarts = math.ceil((100 * 86.2 - 870) / 865)
    extra_s = long.duration_s.mid - 100 * short.duration_s.mid

    assert extra_s == pytest.approx(restarts * 5, rel=0.2)
