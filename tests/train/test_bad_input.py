"""What cannot be trained is refused, and says who and what."""

import math
import socket
from collections.abc import Callable

import pytest
import torch
from torch import nn

from spotwright.domain.errors import (
    BadInputError,
    BatchError,
    HostMemoryError,
    LossNotFiniteError,
    PeerRefusedError,
    ServerLostError,
    TrainingError,
)
from spotwright.domain.workload import Strategy
from spotwright.train import ParameterServer, ServerSettings, Worker
from spotwright.train.host_memory import check_fits
from spotwright.train.layout import Layout, Shard
from spotwright.train.model_memory import ModelMemory
from spotwright.train.wire import Frame, FrameKind, Wire
from tests.train.small_training import backward, build_model, sgd, small_job


def test_an_empty_batch_is_refused_before_it_is_pushed() -> None:
    with small_job() as job:
        model = build_model()
        worker = job.worker("w3", model)
        worker.join()
        loss = backward(model, 1)
        with pytest.raises(BatchError, match="worker w3: a batch of 0 samples at step 1"):
            worker.exchange(loss=loss, batch=0)
        worker.leave()

    assert job.updates[0] == []


def exchange_twice(worker: Worker, model: nn.Module, *, then: float) -> None:
    worker.exchange(loss=backward(model, 1), batch=8)
    worker.exchange(loss=then, batch=8)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_all_and_names_worker_and_step(loss: float) -> None:
    with small_job() as job:
        models = [build_model(), build_model()]
        other = job.worker("other", models[1])
        other.join()
        with (
            pytest.raises(LossNotFiniteError, match=f"loss is {loss} on worker w3 at step 2"),
            job.worker("w3", models[0]) as worker,
        ):
            exchange_twice(worker, models[0], then=loss)
        with pytest.raises(TrainingError, match="on worker w3 at step 2"):
            other.exchange(loss=backward(models[1], 1), batch=8)
        with pytest.raises(TrainingError, match="on worker w3 at step 2"):
            job.servers[0].wait()

    assert len(job.updates[0]) == 1


def test_a_gradient_that_is_not_finite_is_not_pushed_although_the_loss_is() -> None:
    with small_job() as job:
        model = build_model()
        worker = job.worker("w", model)
        worker.join()
        loss = backward(model, 1)
        next(model.parameters()).grad[0, 0] = math.inf  # type: ignore[index]
        with pytest.raises(LossNotFiniteError, match="on worker w at step 1"):
            worker.exchange(loss=loss, batch=8)
        worker.leave()

    assert job.updates[0] == []


def test_half_precision_gradients_whose_sum_leaves_their_type_are_finite() -> None:
    model = nn.Linear(64, 64, dtype=torch.float16)
    memory = ModelMemory(model)
    weight = model.weight.grad
    assert weight is not None

    weight.fill_(60.0)
    assert memory.collect()
    weight[3, 5] = math.nan
    assert not memory.collect()


def test_a_worker_with_another_model_is_told_what_differs() -> None:
    with small_job() as job:
        worker = job.worker("w", build_model(hidden=17))

        with pytest.raises(PeerRefusedError, match=r"0\.weight is 17x12 .*, here it is 16x12"):
            worker.join()


def _connected(job_address: str) -> Wire:
    host, port = job_address.split(":")
    return Wire(socket.create_connection((host, int(port)), timeout=10))


def _hello(**changes: object) -> Frame:
    manifest = Layout.of(build_model()).manifest()
    note = {"worker": "raw", "nonce": "1", "manifest": manifest} | changes
    return Frame(kind=FrameKind.HELLO, note=note)


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([Frame(kind=FrameKind.PUSH)], "PUSH frame before HELLO"),
        ([_hello(worker="no/name")], "cannot be the name of a worker"),
        ([_hello(manifest="large")], "cannot be read"),
        ([_hello(), Frame(kind=FrameKind.PUSH, batch=1)], "PUSH frame of 0 bytes; 1040 are"),
        ([_hello(), Frame(kind=FrameKind.WELCOME)], "WELCOME frame from a worker"),
    ],
)
def test_a_server_refuses_frames_that_are_out_of_place(frames: list[Frame], told: str) -> None:
    with small_job() as job:
        wire = _connected(job.addresses[0])
        for frame in frames:
            wire.send(frame)
        answer = wire.receive_head()
        if answer.kind is FrameKind.WELCOME:
            wire.receive_body(answer, [memoryview(bytearray(answer.body_bytes))])
            answer = wire.receive_head()
        wire.close()
        model = build_model()
        with job.worker("w", model) as worker:
            assert worker.exchange(loss=backward(model, 1), batch=8).applied

    assert answer.kind is FrameKind.REFUSED
    assert told in answer.note["problem"]


def test_anybody_on_this_machine_may_ask_how_far_training_is() -> None:
    with small_job(steps=9) as job:
        model = build_model()
        with job.worker("w", model) as worker:
            worker.exchange(loss=backward(model, 1), batch=8)
            wire = _connected(job.addresses[0])
            wire.send(Frame(kind=FrameKind.STATUS))
            told = wire.receive_head().note
            wire.close()

    assert (told["version"], told["workers"], told["is_over"]) == (1, ["w"], False)


def test_a_server_that_stays_away_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    worker = Worker(build_model(), [address], patience_s=0.3)

    with pytest.raises(ServerLostError, match=f"parameter server {address} is away for 0.3 s"):
        worker.join()


def test_what_listens_and_never_answers_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        worker = Worker(build_model(), [address], patience_s=0.3)

        with pytest.raises(ServerLostError, match=f"parameter server {address} is away for 0.3 s"):
            worker.join()


def test_servers_of_other_jobs_are_not_mixed() -> None:
    with small_job(count=2) as two:
        half = Worker(build_model(), two.addresses[:1])
        with pytest.raises(PeerRefusedError, match="server 0 of 2 and begins at byte 0"):
            half.join()
        twice = Worker(build_model(), two.addresses[:1] * 2)
        with pytest.raises(PeerRefusedError, match="once"):
            twice.join()


def test_a_shard_that_no_host_has_memory_for_is_refused_with_the_figures() -> None:
    shard = Shard(start=0, stop=2**50, frozen_start=2**50, frozen_stop=2**50)
    optimizer = torch.optim.Adam(build_model().parameters())

    with pytest.raises(HostMemoryError, match=r"8 workers needs 24117248\.00 GiB, and this"):
        check_fits(shard, optimizer, workers=8)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"index": 2, "count": 2}, "no server 2 of 2"),
        ({"strategy": Strategy.ALLREDUCE}, "not allreduce; all-reduce jobs run under torchrun"),
        ({"every": 0}, "count from 1"),
        ({"steps": 0}, "count from 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        ServerSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("optimizer", "told"),
    [
        (lambda model: torch.optim.LBFGS(model.parameters()), "LBFGS"),
        (lambda _: sgd(nn.Linear(2, 2)), "not of this model"),
    ],
)
def test_an_optimizer_that_cannot_be_served_is_refused(
    optimizer: Callable[[nn.Module], torch.optim.Optimizer], told: str
) -> None:
    model = build_model()

    with pytest.raises(BadInputError, match=told):
        ParameterServer(model, optimizer(model))
