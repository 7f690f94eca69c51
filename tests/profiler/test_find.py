"""What the user names, and what can be wrong with it."""

from pathlib import Path

import pytest

from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.profiler.find import find_subject

GOOD = """
import torch
def build(data=None):
    return {"model": torch.nn.Linear(4, 1), "loss": lambda m, b: m(b).sum(),
            "batch": lambda size: torch.ones(size, 4)%s}
"""
RETURNS = "import torch\ndef build():\n    return %s\n"
MODEL = "torch.nn.Linear(4, 1)"


def _returns(**parts: str) -> str:
    given = {"model": MODEL, "loss": "print", "batch": "print"} | parts
    return RETURNS % f"{{{', '.join(f'{key!r}: {value}' for key, value in given.items())}}}"


def _script(folder: Path, text: str) -> str:
    path = folder / "it.py"
    path.write_text(text)
    return str(path)


def test_a_script_is_run_and_its_builder_called(tmp_path: Path) -> None:
    found = find_subject(_script(tmp_path, GOOD % ""))

    assert sum(p.numel() for p in found.model.parameters()) == 5
    assert type(found.optimizer).__name__ == "Adam"
    assert found.dataset is None


def test_a_function_of_a_module_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "profiled_module.py").write_text(GOOD.replace("build", "make") % "")
    monkeypatch.chdir(tmp_path)

    assert find_subject("profiled_module:make").name == "profiled_module:make"


def test_the_data_folder_is_given_to_build_and_its_files_are_found(tmp_path: Path) -> None:
    data = tmp_path / "data" / "deep"
    data.mkdir(parents=True)
    (data / "a").write_text("a")
    script = _script(tmp_path, GOOD % ", 'dataset': sorted(data.rglob('*'))")

    found = find_subject(script, data=tmp_path / "data")

    assert found.files == (data / "a",)
    assert len(found.dataset) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("x = 1", r"build\(\) is missing; define it"),
     ("build = 3", r"build\(\) is not a function"),
     ("1 / 0", r"failed: ZeroDivisionError: division by zero \(it.py:1\)"),
     ("def build(depth): pass", "parameters without a default: depth"),
     ("def build(data): pass", "needs the data: add --data FOLDER"),
     ("def build():\n    return {}['x']", r"build\(\) of .* failed: KeyError: 'x' \(it.py:2\)"),
     (RETURNS % "None", r"returned None; return a dict with 'model', 'loss', 'batch'"),
     (RETURNS % MODEL, r"returned a torch\.nn\.modules\.linear\.Linear; return a dict"),
     (RETURNS % "{}", "has no 'model', 'loss', 'batch'; add it"),
     (_returns(optimiser="1"), "did you mean 'optimizer'"),
     (_returns(model="3"), r"model of .* must be a torch\.nn\.Module, .*builtins\.int"),
     (_returns(model="torch.nn.ReLU()"), "has no parameters to train"),
     (_returns(loss="1"), "loss of .* must be a function"),
     (_returns(optimizer="1"), r"must be a torch\.optim\.Optimizer"),
     (_returns(optimizer=f"torch.optim.Adam({MODEL}.parameters())"), "parameters of another model"),
     (_returns(dataset="1"), "dataset with __getitem__ and __len__"),
     (_returns(dataset="[]"), "dataset of .* is empty")],
)  # fmt: skip
def test_what_cannot_be_profiled_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        find_subject(_script(tmp_path, text))


@pytest.mark.parametrize(
    ("target", "complaint"),
    [("absent.py", r"absent\.py: no such script"), ("absent", "no such script; name a .py file"),
     ("no_such_module:build", "importing no_such_module failed: ModuleNotFoundError"),
     ("json:nothing", r"json:nothing: nothing\(\) is missing")],
)  # fmt: skip
def test_what_does_not_exist_is_told(target: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        find_subject(target)


def test_a_model_that_has_no_room_is_told_with_its_size(tmp_path: Path) -> None:
    script = _script(tmp_path, RETURNS % "torch.nn.Linear(10**7, 10**7)")

    with pytest.raises(OutsideWorldError, match=r"does not fit: 372529\.0 GiB more were asked for"):
        find_subject(script)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [(lambda path: None, "does not exist"), (lambda path: path.touch(), "is not a folder"),
     (lambda path: path.mkdir(), "has no files")],
)  # fmt: skip
def test_a_data_folder_without_data_is_told(tmp_path: Path, make: object, complaint: str) -> None:
    assert callable(make)
    make(tmp_path / "data")

    with pytest.raises(BadInputError, match=complaint):
        find_subject(_script(tmp_path, GOOD % ""), data=tmp_path / "data")


def test_a_builder_that_does_not_take_the_data_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("a")

    with pytest.raises(BadInputError, match="takes no parameter `data`"):
        find_subject(_script(tmp_path, RETURNS % "{}"), data=tmp_path / "data")
    with pytest.raises(BadInputError, match="has no dataset although --data is given"):
        find_subject(_script(tmp_path, GOOD % ""), data=tmp_path / "data")
