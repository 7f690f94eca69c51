"""Workers that join, leave, die, come late or under a name that is taken."""

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from spotwright.domain.errors import (
    PeerRefusedError,
    ServerLostError,
    TrainingError,
    TrainingOverError,
)
from spotwright.domain.workload import Strategy
from spotwright.train import Worker
from spotwright.train.wire import Frame, FrameKind
from tests.train.lossy_line import lossy_line
from tests.train.role_process import wait_until
from tests.train.small_training import SmallJob, backward, build_model, small_job, together


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
@pytest.mark.parametrize("count", [1, 2])
def test_those_that_stay_go_on_when_one_leaves_and_one_joins(
    strategy: Strategy, count: int
) -> None:
    with small_job(strategy, count=count, steps=60) as job:
        left = threading.Event()

        def stay(name: str) -> None:
            model = build_model()
            with job.worker(name, model) as worker:
                while not worker.is_over:
                    worker.exchange(loss=backward(model, worker.sequence), batch=8)

        def leave() -> None:
            model = build_model()
            with job.worker("leaves", model) as worker:
                for _ in range(3):
                    worker.exchange(loss=backward(model, worker.sequence), batch=8)
            left.set()

        def join() -> None:
            left.wait(30)
            stay("joins")

        with together(lambda: stay("stays"), leave, join):
            for server in job.servers:
                server.wait()
        versions = {server.progress.shard.version for server in job.servers}
        who = {update.worker for update in job.updates[0]}

    assert versions == {60}
    assert {"stays", "leaves"} <= who


def push_to(worker: Worker, index: int, sequence: int) -> None:
    """Push to one server only, as when the other is to hear of it later."""
    note = worker._links[0].members
    frame = Frame(kind=FrameKind.PUSH, sequence=sequence, batch=8, loss=1.0, note=note)
    worker._links[index].push(frame)


def who_waits_to_catch_up(job: SmallJob) -> list[str]:
    return list(job.servers[1].updates._behind)  # type: ignore[attr-defined]


def test_who_joins_while_a_round_is_closed_on_one_server_waits_until_it_is_on_the_other() -> None:
    with small_job(Strategy.BSP_PS, count=2) as job:
        models = [build_model(), build_model()]
        stays, joins = (job.worker(name, m) for name, m in zip("sj", models, strict=True))
        stays.join()
        note = stays._links[0].members
        with together(joins.join):
            rounds = job.servers[0].updates
            wait_until(lambda: rounds._joining == {"j"})  # type: ignore[attr-defined]
            push_to(stays, 0, 1)
            wait_until(lambda: who_waits_to_catch_up(job) == ["j"])
            stays._links[0].members, told = note, stays._links[0].members
            push_to(stays, 1, 1)
        stays.sequence, stays._links[0].members = 1, told
        with together(lambda: one_step(stays, models[0], 1), lambda: one_step(joins, models[1], 2)):
            pass
        updates = [[(u.worker, u.version) for u in seen] for seen in job.updates]
        stays.leave()
        joins.leave()

    assert [sorted(seen) for seen in updates] == [[("j", 2), ("s", 1), ("s", 2)]] * 2


def test_who_was_late_for_a_round_makes_the_next_one_on_all_servers() -> None:
    with small_job(Strategy.BSP_PS, count=2, begin_with=2, patience_s=0.2) as job:
        models = [build_model(), build_model()]
        late, quick = (job.worker(name, m) for name, m in zip("lq", models, strict=True))
        with together(late.join, quick.join):
            pass
        one_step(quick, models[1], 1)
        for server in job.servers:
            rounds: Any = server.updates
            rounds._rules = replace(rounds._rules, patience_s=60.0)  # what follows may take long
        note = quick._links[0].members
        push_to(quick, 0, 2)
        with together(lambda: one_step(late, models[0], 2)):
            wait_until(lambda: who_waits_to_catch_up(job) == ["l"])
            quick._links[0].members, told = note, quick._links[0].members
            push_to(quick, 1, 2)
        quick.sequence, quick._links[0].members = 2, told
        versions = [link.version for link in late._links]
        late.leave()
        quick.leave()

    assert versions == [2, 2]


def test_a_round_does_not_wait_for_a_worker_whose_connection_ended() -> None:
    with small_job(Strategy.BSP_PS, begin_with=2) as job:
        models = [build_model(), build_model()]
        dies, stays = job.worker("dies", models[0]), job.worker("stays", models[1])
        with together(dies.join, stays.join):
            pass
        dies.close()
        told = stays.exchange(loss=backward(models[1], 1), batch=8)
        members = job.servers[0].updates.members()
        stays.leave()

    assert (told.applied, told.version, members) == (True, 1, ["stays"])


def test_a_worker_that_is_broken_off_says_no_goodbye_it_would_wait_for() -> None:
    with small_job(Strategy.BSP_PS, count=2, begin_with=2) as job:
        models = [build_model(), build_model()]
        stays, ends = (job.worker(name, model) for name, model in zip("se", models, strict=True))
        with together(stays.join, ends.join):
            pass

        def waits_for_its_round() -> None:
            with pytest.raises(ServerLostError, match="was ended here"):
                ends.exchange(loss=backward(models[1], 1), batch=8)

        with together(waits_for_its_round):
            rounds = [server.updates for server in job.servers]
            wait_until(lambda: all(r._pushes for r in rounds))  # type: ignore[attr-defined]
            ends.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        stays.close()


def test_a_worker_does_not_wait_for_one_server_when_another_has_failed() -> None:
    with small_job(Strategy.BSP_PS, count=2, begin_with=2) as job:
        models = [build_model(), build_model()]
        waits, idle = job.worker("waits", models[0]), job.worker("idle", models[1])
        with together(waits.join, idle.join):
            pass
        job.servers[1].progress.fail(TrainingError("its disk is full"))
        loss = backward(models[0], 1)
        with pytest.raises(TrainingError, match="its disk is full"):
            waits.exchange(loss=loss, batch=8)
        waits.leave()
        idle.close()


def one_step(worker: Worker, model: nn.Module, seed: int) -> None:
    worker.exchange(loss=backward(model, seed), batch=8)


def test_a_gradient_that_comes_after_its_round_is_not_applied_and_its_worker_goes_on() -> None:
    with small_job(Strategy.BSP_PS, begin_with=2, patience_s=0.2) as job:
        models = [build_model(), build_model()]
        slow, quick = job.worker("slow", models[0]), job.worker("quick", models[1])
        with together(slow.join, quick.join):
            pass
        quick.exchange(loss=backward(models[1], 1), batch=8)
        late = slow.exchange(loss=backward(models[0], 2), batch=8)
        quick.exchange(loss=backward(models[1], 3), batch=8)
        slow.pull()
        with together(
            lambda: one_step(slow, models[0], 4),
            lambda: one_step(quick, models[1], 5),
        ):
            pass
        updates = [(update.worker, update.version) for update in job.updates[0]]
        slow.leave()
        quick.leave()

    assert (late.applied, late.version) == (False, 1)
    assert updates[:2] == [("quick", 1), ("quick", 2)]
    assert sorted(updates[2:]) == [("quick", 3), ("slow", 3)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_hangs_is_waited_for_once_and_not_in_every_round(count: int) -> None:
    with small_job(Strategy.BSP_PS, count=count, begin_with=2, patience_s=0.5) as job:
        models = [build_model(), build_model()]
        hangs, goes_on = (job.worker(name, m) for name, m in zip("hg", models, strict=True))
        with together(hangs.join, goes_on.join):
            pass
        members = []
        for seed in range(3):
            goes_on.exchange(loss=backward(models[1], seed), batch=8)
            members.append(job.servers[0].updates.members())
        late = hangs.exchange(loss=backward(models[0], 2), batch=8)
        goes_on.exchange(loss=backward(models[1], 4), batch=8)
        members.append(job.servers[0].updates.members())
        hangs.pull()
        with together(
            lambda: one_step(hangs, models[0], 5), lambda: one_step(goes_on, models[1], 6)
        ):
            pass
        versions = [[(u.worker, u.version) for u in seen][4:] for seen in job.updates]
        hangs.leave()
        goes_on.leave()

    assert not late.applied
    assert members == [["g"], ["g"], ["g"], ["g", "h"]]
    assert [sorted(seen) for seen in versions] == [[("g", 5), ("h", 5)]] * count


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_a_push_whose_answer_was_lost_is_applied_once(strategy: Strategy) -> None:
    with small_job(strategy) as job, lossy_line(job.servers[0].address) as line:
        model = build_model()
        with Worker(model, [line.address], name="w") as worker:
            line.lose_next_answer()
            told = worker.exchange(loss=backward(model, 1), batch=8)
            again = worker.exchange(loss=backward(model, 2), batch=8)

    assert worker.reconnects == 1
    assert (told.applied, told.version, again.version) == (True, 1, 2)
    assert [update.sequence for update in job.updates[0]] == [1, 2]


def test_a_worker_that_starts_anew_under_its_name_counts_on() -> None:
    with small_job() as job:
        for expected in ([1, 2], [3, 4]):
            model = build_model()
            with job.worker("w", model) as worker:
                told = [worker.exchange(loss=backward(model, 1), batch=8) for _ in range(2)]
            assert [one.sequence for one in told] == expected
            assert all(one.applied for one in told)


def test_a_process_whose_name_was_taken_is_told() -> None:
    with small_job() as job:
        model = build_model()
        first, second = job.worker("w", model), job.worker("w")
        first.join()
        second.join()
        loss = backward(model, 1)

        with pytest.raises(PeerRefusedError, match="another process has taken the name w"):
            first.exchange(loss=loss, batch=8)
        second.leave()


@contextmanager
def no_file_number_left() -> Iterator[None]:
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)


def test_a_server_that_ran_out_of_file_numbers_lets_workers_in_again() -> None:
    with small_job() as job:
        address = job.servers[0].address
        with socket.socket() as too_many:
            with no_file_number_left():
                too_many.connect((address.host, address.port))
                time.sleep(0.2)
            model = build_model()
            with job.worker("w", model, patience_s=10.0) as worker:
                assert worker.exchange(loss=backward(model, 1), batch=8).applied


def test_a_worker_that_joins_after_the_end_is_told_so() -> None:
    with small_job(steps=2) as job:
        model = build_model()
        with job.worker("w", model) as worker:
            while not worker.is_over:
                worker.exchange(loss=backward(model, 1), batch=8)
        late = job.worker("late")

        with pytest.raises(TrainingOverError, match="training ended after 2 updates"):
            late.join()
        assert late.is_over


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_the_loss_falls_while_workers_come_and_go(strategy: Strategy) -> None:
    with small_job(strategy, steps=200, count=2) as job:

        def train(index: int) -> None:
            for life in range(3):
                model = build_model()
                try:
                    worker = job.worker(f"w{index}.{life}", model)
                    worker.join()
                except TrainingOverError:
                    return
                for step in range(15 + 5 * index if life < 2 else 1000):
                    if worker.is_over:
                        break
                    seed = 1000 * index + 100 * life + step
                    worker.exchange(loss=backward(model, seed, 16), batch=16)
                if life == 1:
                    worker.close()
                else:
                    worker.leave()

        with together(lambda: train(1), lambda: train(2)):
            for server in job.servers:
                server.wait()
        losses = torch.tensor([update.loss for update in job.updates[0]])

    assert losses[-20:].mean() < 0.7 * losses[:20].mean()
