"""`spotwright predict`, run as a user runs it, on every example that ships."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import printed_json, spotwright_here

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEETS = {
    "resnet50.yaml": "g4dn.12xlarge:4*2",
    "bert.yaml": "g5.12xlarge*2/spot",
    "llama-zero3.yaml": "p4de.24xlarge*2",
    "text-cnn-bsp.yaml": "g4dn.xlarge*3 + g6.xlarge",
    "wide-resnet-asp.yaml": "g4dn.xlarge*4",
    "mobilenet-serverless.yaml": "lambda:2048*8",
    "papers/resnet110.yaml": "p3.2xlarge*2 + g4dn.4xlarge",
    "papers/inception-v3.yaml": "p3.2xlarge*2 + g3.4xlarge",
    "papers/esperberto.yaml": "p3.2xlarge*2",
    "papers/vgg19.yaml": "p3.2xlarge*2 + g3.4xlarge*2",
}
KEYS = {
    "strategy", "fleet", "iteration_s", "low_iteration_s", "high_iteration_s",
    "cluster_steps_per_s", "deadline_probability", "overall_deadline_probability",
    "uninterrupted_probability", "traffic_usd",
    "samples_per_s", "weighted_batch", "convergence_coefficient", "steps_to_goal",
    "duration_s", "low_duration_s", "high_duration_s", "duration_p95_s",
    "cost_usd", "low_cost_usd", "high_cost_usd", "bottleneck", "network_basis", "groups",
    "notes", "catalog_time",
}  # fmt: skip
GROUP_KEYS = {
    "instance_type", "node_count", "batch_per_gpu", "step_s", "terms_s", "samples_per_s",
    "memory_gib", "memory_limit_gib", "compute_source",
}  # fmt: skip
TERMS = {"compute", "pcie", "nvlink", "network", "ps_service", "input_stall"}
RESNET = EXAMPLES / "resnet50.yaml"


def _json(*arguments: str | Path) -> Any:
    done = spotwright_here("predict", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def _changed(folder: Path, example: str, old: str, new: str) -> Path:
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    assert old in text
    (folder / "job.yaml").write_text(text.replace(old, new))
    return folder / "job.yaml"


def _refusal(job: Path, *options: str | Path) -> str:
    """Return the complaint of a command that ends with exit 2 and no result."""
    done = spotwright_here("predict", job, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    return done.stderr.removeprefix("error: ")


def test_every_example_has_a_fleet_here() -> None:
    assert {str(f.relative_to(EXAMPLES)) for f in EXAMPLES.rglob("*.yaml")} == set(FLEETS)


@pytest.mark.parametrize("example", FLEETS)
def test_the_prediction_of_an_example_is_complete_and_adds_up(example: str) -> None:
    told = _json(EXAMPLES / example, "--fleet", FLEETS[example])

    assert set(told) == KEYS
    for figure in ("iteration_s", "duration_s", "cost_usd"):
        assert 0 < told[f"low_{figure}"] < told[figure] < told[f"high_{figure}"]
    assert told["duration_p95_s"] >= told["duration_s"]
    assert told["bottleneck"] in TERMS
    for group in told["groups"]:
        assert set(group) == GROUP_KEYS
        assert set(group["terms_s"]) == TERMS
        assert min(group["terms_s"].values()) >= 0
        assert sum(group["terms_s"].values()) == pytest.approx(group["step_s"], rel=1e-9)
    _assert_speeds_agree(told)


def _assert_speeds_agree(told: dict[str, Any]) -> None:
    groups = told["groups"]
    assert told["samples_per_s"] == pytest.approx(sum(g["samples_per_s"] for g in groups))
    assert told["weighted_batch"] == pytest.approx(told["samples_per_s"] * told["iteration_s"])
    counts = [g["node_count"] or told["fleet"][0]["node_count"] for g in groups]
    speed = sum(n / g["step_s"] for n, g in zip(counts, groups, strict=True))
    assert told["cluster_steps_per_s"] == pytest.approx(speed)
    between = 1 / speed if told["strategy"] == "asp-ps" else groups[0]["step_s"]
    assert told["iteration_s"] == pytest.approx(between)
    priced = [f for f in told["fleet"] if f["price_usd_per_hour"] is not None]
    nodes_usd = sum(f["price_usd_per_hour"] * f["node_count"] for f in priced)
    if told["strategy"] != "serverless":
        assert told["cost_usd"] == pytest.approx(nodes_usd * told["duration_s"] / 3600)
    else:
        assert told["cost_usd"] > nodes_usd * told["duration_s"] / 3600


def test_the_installed_command_says_the_same() -> None:
    arguments = (RESNET, "--fleet", FLEETS["resnet50.yaml"])

    assert printed_json("predict", *arguments) == _json(*arguments)


@pytest.mark.parametrize("example", ["resnet50.yaml", "mobilenet-serverless.yaml"])
def test_the_tables_show_the_step_the_cost_and_the_bottleneck(example: str) -> None:
    told = _json(EXAMPLES / example, "--fleet", FLEETS[example])

    done = spotwright_here("predict", EXAMPLES / example, "--fleet", FLEETS[example])

    assert done.returncode == 0
    assert f"{told['iteration_s']:.4f}" in done.stdout
    assert f"${told['cost_usd']:,.2f}" in done.stdout or f"${told['cost_usd']:.4f}" in done.stdout
    assert f"bottleneck: {told['bottleneck']}" in done.stdout
    assert "prices of " in done.stderr


def test_predicting_one_fleet_and_a_table_of_it_gives_the_same_step(tmp_path: Path) -> None:
    configs = tmp_path / "c.csv"
    configs.write_text(
        "strategy,fleet,batch_per_gpu\nallreduce,g4dn.12xlarge:4*2,128\n", encoding="utf-8-sig"
    )

    table = spotwright_here("predict", RESNET, "--configs", configs)

    (row,) = csv.DictReader(io.StringIO(table.stdout))
    told = _json(RESNET, "--fleet", "g4dn.12xlarge:4*2")
    assert float(row["predicted_step_s"]) == pytest.approx(told["iteration_s"], rel=1e-5)
    assert float(row["low_step_s"]) == pytest.approx(told["low_iteration_s"], rel=1e-5)
    assert float(row["predicted_cluster_steps_per_s"]) == pytest.approx(
        told["cluster_steps_per_s"], rel=1e-5
    )


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("allreduce,g4dn.12xlage,128", "did you mean 'g4dn.12xlarge'?"),
        ("allreduce,T4x,128", "unknown"),
        ("allreduce,g4dn.12xlarge,1.5", "batch_per_gpu is 1.5, not a whole number"),
        ("allreduce,g4dn.12xlarge,1e6", "a batch of 1000000 needs"),
        ("serverless,lambda:1024*2,8", "the job is allreduce and has no serverless section"),
    ],
)
def test_one_bad_row_is_exit_2_names_its_line_and_nothing_is_written(
    tmp_path: Path, row: str, complaint: str
) -> None:
    configs, out = tmp_path / "c.csv", tmp_path / "out.csv"
    configs.write_text(f"strategy,fleet,batch_per_gpu\nallreduce,g4dn.12xlarge,128\n{row}\n")

    told = _refusal(RESNET, "--configs", configs, "--csv", out)

    assert told.startswith(f"{configs}:3: ")
    assert complaint in told
    assert not out.exists()


def test_a_table_that_cannot_be_written_is_exit_1(tmp_path: Path) -> None:
    configs = tmp_path / "c.csv"
    configs.write_text("strategy,fleet,batch_per_gpu\nallreduce,g4dn.12xlarge,128\n")
    out = tmp_path / "absent" / "out.csv"

    done = spotwright_here("predict", RESNET, "--configs", configs, "--csv", out)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: cannot write {out}: No such file or directory\n"


@pytest.mark.parametrize(
    "options", [[], ["--fleet", "g4dn.xlarge", "--configs", "c.csv"], ["--csv", "out.csv"]]
)
def test_a_fleet_or_a_table_must_be_given_and_not_both(options: list[str]) -> None:
    assert _refusal(RESNET, *options) == "give either --fleet EXPR, or --configs FILE.csv\n"


def test_a_file_for_a_table_is_refused_where_there_is_none(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"

    assert "--csv goes with --configs" in _refusal(RESNET, "--fleet", "T4", "--csv", out)
    assert not out.exists()


def test_a_job_that_is_not_there_is_exit_2(tmp_path: Path) -> None:
    job = tmp_path / "missing.yaml"

    assert _refusal(job, "--fleet", "T4") == f"{job}: no such file\n"
    assert _refusal(job, "--configs", tmp_path / "c.csv") == f"{job}: no such file\n"


@pytest.mark.parametrize("loss", ["0.35", "0.3"])
def test_a_loss_that_training_never_reaches_is_exit_2(tmp_path: Path, loss: str) -> None:
    job = _changed(tmp_path, "wide-resnet-asp.yaml", "loss: 0.6", f"loss: {loss}")

    told = _refusal(job, "--fleet", "g4dn.xlarge*4")

    assert f"the loss model never goes below 0.35, the target is {loss}" in told


def test_a_batch_that_does_not_fit_is_exit_2_with_the_figure(tmp_path: Path) -> None:
    job = _changed(tmp_path, "resnet50.yaml", "per_gpu: 128", "per_gpu: 512")

    told = _refusal(job, "--fleet", "g4dn.12xlarge:4")

    # fp16: 2 + 2 + 8 bytes for each of 25.6M parameters, 55 MB a sample, 1 GB reserved
    needed = (25.6e6 * 12 + 512 * 55e6 + 1e9) / 2**30
    assert f"a batch of 512 needs {needed:.1f} GiB on T4 (g4dn.12xlarge), which has" in told


def test_a_gpu_without_published_figures_is_exit_2_with_the_way_out() -> None:
    told = _refusal(EXAMPLES / "bert.yaml", "--fleet", "g5g.xlarge@use1-az4")

    assert "the speed of T4g, whose peak rate is not published, is not known" in told
    assert "workload.compute.T4g" in told


def test_a_typo_in_the_fleet_points_at_its_column() -> None:
    told = _refusal(RESNET, "--fleet", "g4dn.12xlarge + g5.xlage")

    assert told.startswith("column 17: unknown instance type 'g5.xlage'; did you mean 'g5.xlarge'?")


def test_a_file_with_several_workloads_is_asked_about_one_of_them(tmp_path: Path) -> None:
    measured = tmp_path / "m.csv"
    measured.write_text(
        "strategy,fleet,batch_per_gpu,model,step_s\n"
        "allreduce,g4dn.xlarge,32,small,0.1\nallreduce,g4dn.xlarge,32,large,0.4\n"
    )
    job = tmp_path / "job.yaml"
    assert spotwright_here("calibrate", measured, "-o", job).returncode == 0

    unnamed = spotwright_here("predict", job, "--fleet", "g4dn.xlarge")
    named = spotwright_here("predict", job, "--fleet", "g4dn.xlarge", "--model", "large", "--json")

    assert unnamed.returncode == 2
    assert "choose one with --model: small, large" in unnamed.stderr
    assert json.loads(named.stdout)["iteration_s"] == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize("onto", ["job.yaml", "c.csv"])
def test_a_table_never_replaces_what_it_is_made_from(tmp_path: Path, onto: str) -> None:
    (tmp_path / "job.yaml").write_text(RESNET.read_text())
    (tmp_path / "c.csv").write_text("strategy,fleet,batch_per_gpu\nallreduce,g4dn.12xlarge,64\n")
    before = (tmp_path / onto).read_text()

    done = spotwright_here(
        "predict", tmp_path / "job.yaml", "--configs", tmp_path / "c.csv", "--csv", tmp_path / onto
    )

    assert done.returncode == 2
    assert "would overwrite what is read" in done.stderr
    assert (tmp_path / onto).read_text() == before
