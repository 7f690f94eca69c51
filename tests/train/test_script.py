"""What a script says is trained, and the batches of a worker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from spotwright.domain.errors import BadInputError, BatchError, SpotwrightError
from spotwright.train.script import batches, load_task, sample_count
from tests.train.role_process import ROOT, SCRIPT


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("no.py", "there is no file no.py"),
        ("no_such.module:build", "there is no module no_such.module"),
        (f"{SCRIPT}:nothing", "has no function nothing"),
        (f"{SCRIPT}:no_task", "returned int, not four values"),
        ("math:sqrt", r"sqrt\(\) of math failed: TypeError"),
    ],
)
def test_what_is_no_task_is_refused(script: str, told: str) -> None:
    with pytest.raises(BadInputError, match=told):
        load_task(script)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("raise KeyError('weights')", "build() of {path} failed: KeyError: 'weights' (task.py:3)"),
        ("torch.nn.Linear(10**7, 10**7)", "the model does not fit: 372529.0 GiB more were asked"),
    ],
)
def test_a_build_that_fails_is_told_in_a_line(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "task.py"
    path.write_text(f"import torch\ndef build():\n    {lines}\n")

    with pytest.raises(SpotwrightError) as raised:
        load_task(str(path))

    assert told.format(path=path) in str(raised.value)


def test_a_file_is_a_script_with_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it_here.py").write_text("RATE = 0.25\n")
    (tmp_path / "task_of_test.py").write_text(
        "import torch, beside_it_here\n"
        "def other():\n"
        "    model = torch.nn.Linear(2, 1)\n"
        "    sgd = torch.optim.SGD(model.parameters(), lr=beside_it_here.RATE)\n"
        "    return model, sgd, torch.nn.MSELoss(), []\n"
    )

    task = load_task(f"{tmp_path}/task_of_test.py:other")

    assert task.optimizer.param_groups[0]["lr"] == 0.25


def test_each_worker_sees_all_of_a_dataset_in_an_order_of_its_own_each_time() -> None:
    data = TensorDataset(torch.arange(10.0), torch.arange(10))

    def epoch(source: object) -> list[float]:
        return [float(x) for _ in range(4) for x in next(source)[0]]  # type: ignore[call-overload]

    first, second = (batches(data, worker=name, batch=3) for name in ("a", "b"))
    orders = [epoch(first), epoch(first), epoch(second)]

    assert all(sorted(order) == list(range(10)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert epoch(batches(data, worker="a", batch=3)) == orders[0]


class Read(Dataset[tuple[Tensor, Tensor]]):
    """Twelve samples, and which were read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.read.append(index)
        return torch.tensor(float(index)), torch.tensor(index)


def _functional(worker: str, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    return ((torch.full((size,), float(i)), torch.full((size,), i)) for i in range(4))


@pytest.mark.parametrize("start", [0, 1, 3, 4, 11])
@pytest.mark.parametrize("make", [Read, lambda: _functional, lambda: list(_functional("w", 3))])
def test_who_begins_later_sees_what_would_have_come_then(
    make: Callable[[], object], start: int
) -> None:
    whole, later = batches(make(), worker="w", batch=3), make()
    expected = [next(whole)[1].tolist() for _ in range(start + 6)][start:]
    begun = batches(later, worker="w", batch=3, start=start)

    assert [next(begun)[1].tolist() for _ in range(6)] == expected
    assert not isinstance(later, Read) or len(later.read) == 18  # none of those before


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "no batch at all"),
        (TensorDataset(torch.zeros(0, 2), torch.zeros(0)), "no batch at all"),
        ([torch.zeros(3)], "a batch is a Tensor, not a pair"),
    ],
)
def test_data_without_batches_is_refused(data: object, told: str) -> None:
    with pytest.raises(BatchError, match=f"worker w: .*{told}"):
        next(batches(data, worker="w", batch=4))


def test_data_of_no_known_kind_is_refused() -> None:
    with pytest.raises(BadInputError, match="data is a int"):
        next(batches(3, worker="w", batch=4))


@pytest.mark.parametrize(
    ("inputs", "samples"),
    [
        (torch.zeros(5, 2), 5),
        ({"ids": torch.zeros(3, 2)}, 3),
        ([torch.zeros(4, 1)], 4),
        ([1, 2], 2),
    ],
)
def test_samples_of_a_batch_are_counted(inputs: Tensor, samples: int) -> None:
    assert sample_count(inputs) == samples


def test_the_example_is_a_task_that_learns() -> None:
    task = load_task(str(ROOT / "examples" / "training" / "elastic.py"))
    source = batches(task.data, worker="w", batch=64)

    losses = []
    for _ in range(200):
        inputs, targets = next(source)
        task.optimizer.zero_grad()
        loss = task.loss(task.model(inputs), targets)
        loss.backward()
        task.optimizer.step()
        losses.append(loss.item())

    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
