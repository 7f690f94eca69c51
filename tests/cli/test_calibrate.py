"""`spotwright calibrate`, run as a user runs it, and what `predict` makes of its file."""

import csv
import io
import json
import os
import threading
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.cli.calibrate import LawName
from spotwright.domain.job import Placement, Target, TargetKind
from spotwright.domain.measurement import Measurement
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    NoiseScaleLaw,
    ParameterServing,
    Strategy,
)
from tests.cli.command import spotwright, spotwright_here
from tests.perfmodel.calibration.synthetic_rows import (
    configurations,
    measure,
    on_line,
    steps_s,
    truth,
)

HEADER = "strategy,fleet,batch_per_gpu,parameter_bytes,tensor_count,model,step_s\n"
GOOD = HEADER + "asp-ps,g4dn.xlarge,32,1e8,160,,0.6\n"
NEW = ["predicted_step_s", "low_step_s", "high_step_s", "predicted_cluster_steps_per_s"]
REAL = truth(
    Strategy.ALLREDUCE,
    compute={"T4": ComputeProfile(fixed_s=0.03, per_sample_s=0.006)},
    allreduce=AllreduceTuning(),
)
SERVERS = truth(
    Strategy.ASP_PS,
    compute={"T4": ComputeProfile(per_sample_s=0.006)},
    parameter_serving=ParameterServing(),
)
FLEETS = ("g4dn.12xlarge:1", "g4dn.12xlarge:4", "g4dn.12xlarge:4*2", "g4dn.12xlarge:4*4")
UNSEEN = ("g4dn.12xlarge:4*8", "g4dn.12xlarge:2*3")


def _text(rows: list[Measurement]) -> str:
    lines = [
        f"{r.configuration.strategy},{r.configuration.fleet},{r.configuration.batch_per_gpu},"
        f"1e8,160,{r.configuration.model or ''},{r.step_s or ''}\n"
        for r in rows
    ]
    return HEADER + "".join(lines)


def _ring(model: str | None = None, *, noise: float = 0.01) -> list[Measurement]:
    rows = configurations(Strategy.ALLREDUCE, *FLEETS, batches=(8, 32, 64, 128), model=model)
    return measure(rows, REAL, noise=noise)


def _calibrate(folder: Path, text: str, *options: str | Path) -> CompletedProcess[str]:
    (folder / "m.csv").write_text(text)
    return spotwright_here("calibrate", folder / "m.csv", "-o", folder / "job.yaml", *options)


def _table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_measured_steps_become_a_job_that_predicts_unseen_placements(tmp_path: Path) -> None:
    configs, out = tmp_path / "c.csv", tmp_path / "out.csv"
    configs.write_text(
        "note,strategy,fleet,batch_per_gpu,parameter_bytes,step_s\n"
        + "".join(f"n{i},allreduce,{fleet},16,1e8,\n" for i, fleet in enumerate(UNSEEN))
    )

    (tmp_path / "m.csv").write_text(_text(_ring()))
    done = spotwright("calibrate", tmp_path / "m.csv", "-o", tmp_path / "job.yaml")
    table = spotwright(
        "predict", tmp_path / "job.yaml", "--configs", configs, "--csv", out, "--json"
    )

    assert (done.returncode, table.returncode) == (0, 0)
    assert f"written to {tmp_path / 'job.yaml'}" in done.stderr
    written = _table(out.read_text())
    assert list(written[0]) == [
        "note", "strategy", "fleet", "batch_per_gpu", "parameter_bytes", "step_s", *NEW
    ]  # fmt: skip
    assert [(row["note"], row["fleet"]) for row in written] == [
        ("n0", UNSEEN[0]),
        ("n1", UNSEEN[1]),
    ]
    real = steps_s(configurations(Strategy.ALLREDUCE, *UNSEEN, batches=(16,)), REAL)
    found = [float(row["predicted_step_s"]) for row in written]
    assert found == pytest.approx(real, rel=0.05)
    for row, cells in zip(json.loads(table.stdout), written, strict=True):
        assert float(row["low_step_s"]) < float(row["predicted_step_s"]) < float(row["high_step_s"])
        for name in NEW:
            assert float(cells[name]) == pytest.approx(row[name], rel=1e-5)


def test_the_report_names_the_errors_what_is_not_known_and_the_outliers(tmp_path: Path) -> None:
    rows = on_line(_ring(), 9, factor=3.0)

    told = json.loads(_calibrate(tmp_path, _text(rows), "--json").stdout)

    assert told["output"] == str(tmp_path / "job.yaml")
    (model,) = told["models"]
    assert set(model) == {
        "model", "strategy", "row_count", "fit_error_fraction", "unseen_error_fraction",
        "coverage_fraction", "outlier_lines", "notes",
    }  # fmt: skip
    assert (model["model"], model["strategy"], model["row_count"]) == ("model", "allreduce", 16)
    assert model["outlier_lines"] == [9]
    assert model["fit_error_fraction"] > 0
    assert 0 <= model["coverage_fraction"] <= 1


def test_the_table_says_on_stdout_what_the_rows_cannot_tell(tmp_path: Path) -> None:
    done = _calibrate(tmp_path, GOOD)

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split() == [
        "model", "strategy", "rows", "fit", "error", "unseen", "placements",
        "90", "%", "interval", "covers",
    ]  # fmt: skip
    assert "model: all rows have one server: the largest shard keeps its usual share" in done.stdout
    text = (tmp_path / "job.yaml").read_text()
    assert text.startswith("# Fitted by `spotwright calibrate m.csv`, 1 rows.\n# The goal is a pl")


def test_several_models_go_into_one_file_and_each_row_finds_its_own(tmp_path: Path) -> None:
    text = _text([*_ring("small")[:4], *_ring("large")[:4]])
    servers = measure(configurations(Strategy.ASP_PS, "g4dn.xlarge", model="large"), SERVERS)
    text += _text(servers).removeprefix(HEADER)

    assert _calibrate(tmp_path, text).returncode == 0
    job = tmp_path / "job.yaml"
    table = spotwright_here("predict", job, "--configs", tmp_path / "m.csv")

    specs = read_job_file(job).specs
    assert list(specs) == ["small", "large/allreduce", "large/asp-ps"]
    assert specs["small"].limits.placement is Placement.ONE_ZONE
    assert specs["large/asp-ps"].limits.placement is Placement.ONE_REGION
    assert table.returncode == 0
    for row in _table(table.stdout):
        assert float(row["predicted_step_s"]) == pytest.approx(float(row["step_s"]), rel=0.1)


def test_a_base_job_keeps_its_goal_and_limits(tmp_path: Path) -> None:
    base = Path(__file__).parents[2] / "examples" / "resnet50.yaml"

    done = _calibrate(tmp_path, _text(_ring()), "--job", base)

    assert done.returncode == 0
    found, given = read_job_file(tmp_path / "job.yaml").spec, read_job_file(base).spec
    assert (found.name, found.limits) == (given.name, given.limits)
    assert found.goal.target == Target(kind=TargetKind.EPOCHS, value=90)
    assert found.goal.deadline_s == given.goal.deadline_s
    assert found.workload.input == given.workload.input
    assert found.workload.compute["T4"] != given.workload.compute["T4"]
    assert "placeholder" not in (tmp_path / "job.yaml").read_text()


@pytest.mark.parametrize("strategy", ["allreduce", "asp-ps"])
def test_the_written_job_is_one_that_predicts_a_fleet(tmp_path: Path, strategy: str) -> None:
    _calibrate(tmp_path, GOOD.replace("asp-ps", strategy))

    done = spotwright_here("predict", tmp_path / "job.yaml", "--fleet", "g4dn.xlarge*2", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["groups"][0]["compute_source"] == "measured"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "m.csv: the file is empty"),
        (HEADER, "m.csv: there are no rows below the header"),
        (GOOD.replace("fleet", "flet", 1), "m.csv:1: the column 'fleet' is missing; is 'flet'"),
        (GOOD.replace("0.6", "nan"), "m.csv:2: step_s is nan"),
        (GOOD.replace("0.6", ""), "m.csv:2: give exactly one of step_s and cluster_steps_per_s"),
        (GOOD.replace("asp-ps", "asp"), "m.csv:2: unknown strategy 'asp'; did you mean asp-ps?"),
        (GOOD.replace("g4dn", "g4nd"), "m.csv:2: column 1: unknown instance type 'g4nd.xlarge'"),
        (GOOD.replace("1e8", ""), "m.csv:2: strategy asp-ps needs parameter_bytes"),
    ],
)
def test_bad_rows_are_exit_2_and_leave_an_older_job_alone(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "job.yaml").write_text("older")

    done = _calibrate(tmp_path, text)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {tmp_path}/{complaint}" in done.stderr
    assert (tmp_path / "job.yaml").read_text() == "older"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "m.csv"]


@pytest.mark.parametrize("name", ["absent.csv", "."])
def test_what_is_no_file_is_exit_2(tmp_path: Path, name: str) -> None:
    done = spotwright_here("calibrate", tmp_path / name, "-o", tmp_path / "job.yaml")

    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "reason"),
    [("absent/job.yaml", "No such file or directory"), (".", "Is a directory")],
)
def test_an_output_that_cannot_be_written_is_a_clean_error(
    tmp_path: Path, output: str, reason: str
) -> None:
    (tmp_path / "m.csv").write_text(GOOD)

    done = spotwright_here("calibrate", tmp_path / "m.csv", "-o", tmp_path / output)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: cannot write {tmp_path / output}: {reason}"
    assert [p.name for p in tmp_path.iterdir()] == ["m.csv"]


def test_a_link_is_followed_and_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(GOOD)
    (tmp_path / "real.yaml").write_text("older")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    os.mkfifo(tmp_path / "pipe")
    heard: list[str] = []
    reader = threading.Thread(
        target=lambda: heard.append((tmp_path / "pipe").read_text()), daemon=True
    )
    reader.start()

    for name in ("link.yaml", "pipe"):
        done = spotwright("calibrate", tmp_path / "m.csv", "-o", tmp_path / name)
        assert done.returncode == 0
    reader.join(timeout=10)

    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "pipe").is_fifo()
    assert heard == [(tmp_path / "real.yaml").read_text()]
    assert heard[0].startswith("# Fitted by")


@pytest.mark.parametrize("output", ["m.csv", "./m.csv", "link.csv"])
def test_the_measurements_are_not_overwritten_by_the_job(tmp_path: Path, output: str) -> None:
    (tmp_path / "m.csv").write_text(GOOD)
    (tmp_path / "link.csv").symlink_to("m.csv")

    done = spotwright_here("calibrate", tmp_path / "m.csv", "-o", tmp_path / output)

    assert (done.returncode, done.stdout) == (2, "")
    assert "would overwrite what is read" in done.stderr
    assert (tmp_path / "m.csv").read_text() == GOOD


def _loss_log() -> str:
    """Return a log that reaches a loss of 0.5 after 500 * (1 + 256 / batch) steps."""
    rows = [
        f"{step},{0.5 * 500 * (1 + 256 / batch) / step},1,{batch}\n"
        for batch in (64, 256, 1024)
        for step in range(10, 4000, 10)
    ]
    return "step,loss,worker_count,weighted_batch\n" + "".join(rows)


def _with_goal_of_loss(folder: Path) -> Path:
    """Write the calibrated job with a loss for its goal and a law to be replaced."""
    _calibrate(folder, GOOD)
    older = "  convergence: {law: cynthia, k0: 1, k1: 0.1}\ngoal:\n  loss: 0.5\n"
    text = (folder / "job.yaml").read_text()
    assert "goal:\n  steps: 10000\n" in text
    (folder / "base.yaml").write_text(text.replace("goal:\n  steps: 10000\n", older))
    return folder / "base.yaml"


@pytest.mark.parametrize("law", [str(name) for name in LawName])
def test_every_law_on_offer_has_a_fit_behind_it(tmp_path: Path, law: str) -> None:
    base = _with_goal_of_loss(tmp_path)
    (tmp_path / "log.csv").write_text(_loss_log())

    done = _calibrate(tmp_path, GOOD, "--job", base, "--losses", tmp_path / "log.csv", "--law", law)

    if law == "spotdnn":  # the log has one number of workers
        assert done.returncode == 2
        assert "another number of workers" in done.stderr
        return
    assert done.returncode == 0
    assert f"{law} law, iterations to the goal within" in done.stderr


def test_a_log_of_several_batches_gives_the_noise_scale(tmp_path: Path) -> None:
    base = _with_goal_of_loss(tmp_path)
    (tmp_path / "log.csv").write_text(_loss_log())
    losses = ("--losses", tmp_path / "log.csv", "--law", "noise-scale")

    done = _calibrate(tmp_path, GOOD, "--job", base, *losses)

    assert done.returncode == 0
    law = read_job_file(tmp_path / "job.yaml").spec.workload.convergence
    assert isinstance(law, NoiseScaleLaw)
    assert law.noise_scale_samples == pytest.approx(256, rel=0.06)


def test_a_loss_law_needs_a_goal_of_a_loss(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(_loss_log())

    done = _calibrate(tmp_path, GOOD, "--losses", tmp_path / "log.csv")

    assert (done.returncode, done.stdout) == (2, "")
    assert "set goal.loss" in done.stderr


def test_the_written_job_is_planned_at_sustained_rates(tmp_path: Path) -> None:
    _calibrate(tmp_path, GOOD)

    assert "network" not in (tmp_path / "job.yaml").read_text()
