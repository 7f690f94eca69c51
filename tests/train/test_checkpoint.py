"""Checkpoints: written and read, refused, resumed from, and how much they lose."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from spotwright.domain.errors import (
    BadInputError,
    CheckpointError,
    OutsideWorldError,
    TrainingError,
)
from spotwright.domain.workload import Strategy
from spotwright.train.checkpoint import from_bytes, load_into, to_parts
from spotwright.train.checkpoint_places import BucketPlace, CheckpointPlace, FolderPlace, open_place
from tests.moto_server import MotoServer, moto  # noqa: F401  a fixture
from tests.train.role_process import wait_until
from tests.train.small_training import backward, build_model, parameters, small_job


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)


def train(
    folder: str, *, steps: int, count: int = 1, strategy: Strategy = Strategy.ASP_PS
) -> torch.Tensor:
    """Train up to a step with one worker; a batch is told by its sequence number."""
    with small_job(
        strategy, count=count, steps=steps, checkpoint=folder, every=4, optimizer=adam
    ) as job:
        model = build_model()
        with job.worker("w", model) as worker:
            while not worker.is_over:
                worker.exchange(loss=backward(model, worker.sequence), batch=8)
    return job.parameters()


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
@pytest.mark.parametrize("count", [1, 2])
def test_training_that_stops_and_resumes_is_training_that_never_stopped(
    tmp_path: Path, strategy: Strategy, count: int
) -> None:
    straight = train(str(tmp_path / "a"), steps=20, count=count, strategy=strategy)
    for steps in (6, 7, 20):
        resumed = train(str(tmp_path / "b"), steps=steps, count=count, strategy=strategy)

    assert torch.equal(straight, resumed)


def test_a_model_is_loaded_from_the_checkpoints_of_all_servers(tmp_path: Path) -> None:
    served = train(str(tmp_path), steps=5, count=2)
    place, model = FolderPlace(tmp_path), build_model()
    found = [from_bytes(place.read(name) or b"", place=name) for name in place.names()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()

    load_into(model, found)

    assert torch.equal(parameters(model), served)
    with pytest.raises(CheckpointError, match="of all servers are needed, found 1 of 2"):
        load_into(model, found[:1])


def go_on(folder: Path, updates: int, *, steps: int | None = None) -> list[tuple[int, bool]]:
    """Train two servers on from a folder; return how far each is and whether all is over."""
    with small_job(checkpoint=str(folder), count=2, steps=steps) as job:
        model = build_model()
        with job.worker("w", model) as worker:
            for seed in range(updates):
                worker.exchange(loss=backward(model, seed), batch=8)
        wait_until(lambda: steps is None or all(s.progress.is_over for s in job.servers))
        return [(s.progress.shard.version, s.progress.is_over) for s in job.servers]


def go_on_over(folder: Path, *, steps: int) -> list[bool]:
    """Return whether all is over for servers that go on from a folder."""
    with small_job(checkpoint=str(folder), count=2, steps=steps) as job:
        return [server.progress.is_over for server in job.servers]


def test_a_server_that_lost_updates_still_knows_that_all_is_over(tmp_path: Path) -> None:
    go_on(tmp_path, 3)
    earlier = (tmp_path / "shard-1-of-2.ckpt").read_bytes()
    go_on(tmp_path, 1)
    (tmp_path / "shard-1-of-2.ckpt").write_bytes(earlier)  # as if it had been killed
    ended = go_on(tmp_path, 2, steps=6)

    again = go_on_over(tmp_path, steps=6)
    longer = go_on_over(tmp_path, steps=9)

    assert ended == [(6, True), (5, True)]
    assert (again, longer) == ([True, True], [False, False])


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    train(str(tmp_path), steps=3)
    path = tmp_path / "shard-0-of-1.ckpt"
    whole = path.read_bytes()
    flipped = whole[:900] + bytes([whole[900] ^ 1]) + whole[901:]

    for damaged, told in (
        (whole[:-10], "truncated or was changed"),
        (flipped, "truncated or was changed"),
        (b"PK\x03\x04" + bytes(100), "no checkpoint of spotwright"),
        (b"", "no checkpoint of spotwright"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=told):
            train(str(tmp_path), steps=5)


def test_a_checkpoint_of_another_model_or_number_of_servers_is_refused(tmp_path: Path) -> None:
    train(str(tmp_path), steps=3, count=1)
    other = small_job(checkpoint=str(tmp_path), build=lambda: build_model(hidden=9))
    (tmp_path / "shard-0-of-2.ckpt").write_bytes((tmp_path / "shard-0-of-1.ckpt").read_bytes())

    with pytest.raises(CheckpointError, match=r"its 0\.weight is 16x12 .*, here"), other:
        pass
    with pytest.raises(CheckpointError, match="of server 0 of 1, this is server 0 of 2"):
        train(str(tmp_path), steps=5, count=2)


def test_what_an_optimizer_keeps_comes_back_as_it_was(tmp_path: Path) -> None:
    train(str(tmp_path), steps=3)
    content = (tmp_path / "shard-0-of-1.ckpt").read_bytes()

    found = from_bytes(content, place="here")

    assert b"".join(to_parts(found)) == content
    assert found.optimizer["param_groups"][0]["betas"] == (0.9, 0.999)
    assert set(found.optimizer["state"][0]) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
    assert found.applied == {"w": 3}


class Forgetful(FolderPlace):
    """A place that cannot be written for a while, as a bucket may be."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.refusals = 2

    def write(self, name: str, parts: object) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OutsideWorldError("not now")
        super().write(name, parts)  # type: ignore[arg-type]


def test_no_more_than_an_interval_is_ever_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: CheckpointPlace = Forgetful(tmp_path)
    monkeypatch.setattr("spotwright.train.parameter_server.open_place", lambda _: place)
    ahead = []
    with small_job(checkpoint="here", every=4) as job:
        model = build_model()
        with job.worker("w", model) as worker:
            for _ in range(20):
                told = worker.exchange(loss=backward(model, worker.sequence), batch=8)
                saved = job.servers[0].saved_version
                assert saved is not None
                ahead.append(told.version - saved)

    assert max(ahead) <= 4
    assert job.servers[0].saved_version == 20


def train_while_the_folder_is_taken_away(folder: Path) -> None:
    model = build_model()
    with small_job(checkpoint=str(folder), every=100) as job, job.worker("w", model) as worker:
        worker.exchange(loss=backward(model, 1), batch=8)
        folder.write_text("no folder any more")


def test_a_last_checkpoint_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"training cannot be saved: cannot write .*run/shard"):
        train_while_the_folder_is_taken_away(tmp_path / "run")


class SecretiveSgd(torch.optim.SGD):
    """Keeps what no checkpoint can hold."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.05)
        self.param_groups[0]["secret"] = object()


def train_what_cannot_be_saved(folder: Path) -> None:
    model = build_model()
    with (
        small_job(checkpoint=str(folder), every=2, optimizer=SecretiveSgd) as job,
        job.worker("w", model) as worker,
    ):
        for step in range(10):
            worker.exchange(loss=backward(model, step), batch=8)


def test_an_optimizer_that_cannot_be_saved_stops_training_and_nobody_waits(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="optimizer's state holds a object, which a checkpoint"):
        train_what_cannot_be_saved(tmp_path)


@pytest.mark.parametrize("where", ["gs://bucket/key", "s3://", "s3:///key"])
def test_a_place_that_cannot_be_is_refused(where: str) -> None:
    with pytest.raises(BadInputError, match=r"s3://BUCKET/KEY"):
        open_place(where)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OutsideWorldError, match=r"cannot write .*file/x"):
        FolderPlace(tmp_path / "file").write("x", [memoryview(b"1")])


@pytest.fixture
def bucket(moto: MotoServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:  # noqa: F811
    for name, value in moto.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    moto.client("s3").create_bucket(Bucket="models")
    yield "s3://models/run-1"
    for entry in moto.client("s3").list_objects_v2(Bucket="models").get("Contents", ()):
        moto.client("s3").delete_object(Bucket="models", Key=entry["Key"])
    moto.client("s3").delete_bucket(Bucket="models")


def test_training_resumes_from_a_bucket(tmp_path: Path, bucket: str) -> None:
    straight = train(str(tmp_path), steps=12)
    train(bucket, steps=5)
    resumed = train(bucket, steps=12)

    assert torch.equal(straight, resumed)
    assert BucketPlace(bucket).names() == ["shard-0-of-1.ckpt"]
    assert BucketPlace(bucket + "/other").read("shard-0-of-1.ckpt") is None


def test_a_bucket_that_is_not_there_is_named(bucket: str) -> None:
    place = BucketPlace("s3://elsewhere/run")

    with pytest.raises(OutsideWorldError, match="cannot write s3://elsewhere/run/shard"):
        place.write("shard-0-of-1.ckpt", [memoryview(b"1")])
