"""`spotwright profile`, run as a user runs it, and what `plan` makes of its file."""

import json
from pathlib import Path

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from tests.cli.command import python, spotwright_here

ROOT = Path(__file__).parents[2]
CNN = ROOT / "examples" / "models" / "small_cnn.py"
QUICK = ("--seconds", "3", "--batches", "2,4", "--no-exchange", "--instances", "g4dn.12xlarge")
LINEAR = """
import torch
def build():
    return {"model": torch.nn.Linear(4, 1), "loss": lambda m, b: m(b).sum() * %s,
            "batch": lambda size: torch.ones(size, 4)}
"""
BASE = """
name: mine
workload:
  strategy: asp-ps
  model: {parameter_size: 1 GB, flops_per_sample: 1 GFLOP}
  batch: {per_gpu: 6}
  convergence: {law: cynthia, k0: 3, k1: 0.1}
goal: {loss: 0.5, deadline: 3h}
limits: {gpus: [T4], regions: [us-east-1], max_nodes: 2}
"""
WITHOUT_TORCH = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Hidden())
from spotwright.cli.entry import main
main()
"""


def _linear(folder: Path, factor: str = "1.0") -> Path:
    path = folder / "linear.py"
    path.write_text(LINEAR % factor)
    return path


def test_the_example_becomes_a_job_that_plan_takes(tmp_path: Path) -> None:
    out = tmp_path / "job.yaml"

    done = spotwright_here("profile", CNN, *QUICK, "--out", out)

    assert done.returncode == 0, done.stderr
    assert "94,762" in done.stdout
    assert "no GPU here" in done.stdout
    assert "g4dn.12xlarge" in done.stdout
    job = read_job_file(out).spec
    assert job.workload.compute == {}
    assert job.workload.model.parameter_count == 94_762
    assert job.workload.dataset
    assert job.workload.dataset.sample_count == 10_000
    planned = spotwright_here("plan", out, "--gap", "0.2", "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["status"] in {"optimal", "feasible"}


def test_only_the_workload_of_a_job_is_replaced(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(BASE)
    before = read_job_file(job).spec

    done = spotwright_here(
        "profile", _linear(tmp_path), *QUICK, "--job", job, "--out", job, "--json"
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    after = read_job_file(job).spec
    assert (after.name, after.goal, after.limits) == (before.name, before.goal, before.limits)
    assert after.workload.convergence == before.workload.convergence
    assert after.workload.strategy is before.workload.strategy
    assert after.workload.model.parameter_bytes == told["gradient_bytes"] == 20
    assert told["flops_per_sample"] == 16
    assert told["device"] == "CPU"
    assert [step["batch"] for step in told["steps"]] == [2, 4]
    assert [one["instance_type"] for one in told["instances"]] == ["g4dn.12xlarge"]
    assert told["to_device_mbps"] is None


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [(["--batch", "0"], "a batch must be at least 1, got 0"),
     (["--batches", "8,-4"], "a batch must be at least 1, got -4"),
     (["--batches", "8"], "needs two batches"),
     (["--batches", "few"], "'few' is not a list of whole numbers such as 8,16,32"),
     (["--seconds", "soon"], "--seconds"),
     (["--data", "absent"], "--data: absent does not exist"),
     (["--device", "tpu"], "--device is auto, cpu, cuda or cuda:N"),
     (["--strategy", "serverless"], "choose another --strategy"),
     (["--instances", "g4dn.13xlarge"], "unknown instance type 'g4dn.13xlarge'"),
     (["--listen", "a:1", "--join", "b:1"], "give one"),
     (["--job", "absent.yaml"], "absent.yaml: no such file")],
)  # fmt: skip
def test_bad_flags_are_exit_2_before_anything_is_measured(
    tmp_path: Path, flags: list[str], complaint: str
) -> None:
    done = spotwright_here("profile", _linear(tmp_path), *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_a_loss_that_is_not_a_number_names_the_batch(tmp_path: Path) -> None:
    done = spotwright_here("profile", _linear(tmp_path, "float('nan')"), *QUICK)

    assert (done.returncode, done.stdout) == (2, "")
    assert "linear.py at a batch of 2 is nan" in done.stderr


def test_a_script_without_a_builder_says_what_to_add(tmp_path: Path) -> None:
    path = tmp_path / "it.py"
    path.write_text("import torch\n")

    done = spotwright_here("profile", path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "build() is missing; define it, returning a dict with 'model', 'loss'" in done.stderr


def test_without_torch_the_extra_is_named() -> None:
    done = python(WITHOUT_TORCH, "profile", str(CNN))

    assert (done.returncode, done.stdout) == (1, "")
    assert "profile needs the 'train' extra: pip install 'spotwright[train]'" in done.stderr
