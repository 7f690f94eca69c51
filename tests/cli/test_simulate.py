import json
import sys
from datetime import UTC, datetime
from importlib.abc import MetaPathFinder
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import spotwright_here
from tests.cli.small_job import small_job, told_plan


def test_simulate_tells_every_policy_beside_the_promise(tmp_path: Path) -> None:
    job, page = small_job(tmp_path), tmp_path / "run.html"
    asked = ("--policy", "ours", "--policy", "on-demand", "--runs", "2", "--processes", "1")

    done = spotwright_here("simulate", job, *asked, "--json", "--plot", page)

    assert (done.returncode, done.stderr) == (0, f"timeline written to {page}\n")
    told = json.loads(done.stdout)
    assert list(told["policies"]) == ["ours", "on-demand"]
    assert told["policies"]["on-demand"]["late"] == 0
    assert told["policies"]["on-demand"]["nodes_lost"] == 0
    assert told["promised"]["deadline_probability"] > 0.9
    assert page.read_text().count('class="chart"') == 3


def test_one_run_tells_no_bounds_of_its_cost(tmp_path: Path) -> None:
    asked = ("--policy", "on-demand", "--runs", "1", "--processes", "1")

    told = spotwright_here("simulate", small_job(tmp_path), *asked)
    document = spotwright_here("simulate", small_job(tmp_path), *asked, "--json")

    found = json.loads(document.stdout)["policies"]["on-demand"]
    assert "of one run: none" in told.stdout
    assert found["cost_usd"] > 0
    assert found["low_cost_usd"] is found["high_cost_usd"] is None


def test_simulate_starts_with_a_plan_and_draws_hazards(tmp_path: Path) -> None:
    job, plan = small_job(tmp_path), tmp_path / "plan.json"
    plan.write_text(json.dumps(told_plan(job)))

    done = spotwright_here(
        "simulate", job, "--plan", plan, "--traces", "hazard", "--policy", "greedy", "--runs", "3",
        "--processes", "1",
    )  # fmt: skip

    assert done.returncode == 0
    assert "losses drawn from the hazards" in done.stdout
    assert "the plan promised" in done.stdout


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"zone": "euw1-az1"}, "the job cannot rent g4dn.xlarge@euw1-az1/spot; is it a plan of"),
        ({"instance_type": "m5.large"}, "the job cannot rent m5.large@use1-az6/spot"),
        ({"node_count": 500}, "has 500 nodes, and limits.max_nodes is 8"),
        ({"role": "ps"}, "cannot run the job"),
    ],
)
def test_a_plan_of_another_job_is_refused(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    job, file = small_job(tmp_path), tmp_path / "plan.json"
    plan = told_plan(job)
    (group,) = plan["fleet"]
    file.write_text(json.dumps(plan | {"fleet": [group | change]}))

    done = spotwright_here("simulate", job, "--plan", file, "--policy", "greedy", "--runs", "1")

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_a_plan_that_rents_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"status": "infeasible", "fleet": None}))

    done = spotwright_here("simulate", small_job(tmp_path), "--plan", file)

    assert (done.returncode, done.stdout) == (2, "")
    assert "rents nothing: it is infeasible" in done.stderr


def test_simulate_pays_the_prices_of_a_history(tmp_path: Path) -> None:
    history = tmp_path / "history.parquet"
    types = ("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge")
    rows = [
        {"timestamp": datetime(year, 1, 1, tzinfo=UTC), "instance_type": name, "az": "use1-az6",
         "ondemand_price": 100.0, "spot_price": 90.0}
        for name in types
        for year in (2024, 2026)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), history)
    asked = ("--policy", "on-demand", "--runs", "2", "--processes", "1", "--json")
    job = small_job(tmp_path)

    listed = spotwright_here("simulate", job, *asked)
    dear = spotwright_here("simulate", job, *asked, "--prices", history, "--since", "2024-06-01")

    told = json.loads(dear.stdout)
    assert "prices of 2024-06-01 to 2026-01-01 for 6 of 6 pools" in told["market"]
    before_usd = json.loads(listed.stdout)["policies"]["on-demand"]["cost_usd"]
    assert told["policies"]["on-demand"]["cost_usd"] > 10 * before_usd


def test_cut_down_nodes_are_no_lost_nodes(tmp_path: Path) -> None:
    asked = ("--policy", "greedy", "--runs", "4", "--processes", "1", "--json")
    job = small_job(tmp_path)

    taken = spotwright_here("simulate", job, *asked)
    cut = spotwright_here("simulate", job, *asked, "--deflation", "proportional")

    lost = [json.loads(d.stdout)["policies"]["greedy"]["nodes_lost"] for d in (taken, cut)]
    assert lost[1] < lost[0]


_TRACES = "trace_id,t_seconds,nodes\n" + "".join(
    f"{name},{seconds},4\n" for name in ("probed", "kept", "held") for seconds in (0, 900_000)
)
_INDEX = (
    "trace_id,source,kind,zone,instance_type,target_nodes\n"
    "probed,lab,availability,,,4\nkept,lab,preemption,,,4\nheld,lab,cluster_size,,,4\n"
)


def test_only_series_of_what_could_be_had_are_taken_for_availability(tmp_path: Path) -> None:
    traces, job = tmp_path / "traces.csv", small_job(tmp_path)
    traces.write_text(_TRACES)
    (tmp_path / "traces_index.csv").write_text(_INDEX)
    asked = ("--traces", traces, "--policy", "greedy", "--runs", "1", "--processes", "1", "--json")

    some = spotwright_here("simulate", job, *asked)
    (tmp_path / "traces_index.csv").write_text(_INDEX.replace("availability", "preemption"))
    none = spotwright_here("simulate", job, *asked)

    assert "1 measured availability series (lab)" in json.loads(some.stdout)["market"]
    assert "2 series of nodes that were held are left out" in json.loads(some.stdout)["market"]
    assert none.returncode == 2
    assert "has series of kind cluster_size, preemption only" in none.stderr


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--policy", "lucky"], "no 'lucky'; there are ours, on-demand"),
        (["--traces", "nowhere"], "nowhere is neither a CSV file"),
        (["--plot", "run.pdf"], "must be a .png or .html file"),
        (["--plan", "missing.json"], "is not what `spotwright plan --json` prints"),
        (["--ray", "local", "--processes", "2"], "drop one"),
        (["--deflation", "steady"], "no 'steady'; there are proportional, priority, deterministic"),
        (["--since", "2025-01-01"], "name the history as well"),
        (["--prices", "missing.parquet"], "cannot be read as price history"),
        (["--prices", "missing.parquet", "--until", "May"], "'May' is not a date"),
    ],
)
def test_simulate_says_what_is_wrong(tmp_path: Path, flags: list[str], complaint: str) -> None:
    done = spotwright_here("simulate", small_job(tmp_path), *flags)

    assert done.returncode == 2
    assert complaint in done.stderr


def test_what_a_picture_needs_is_asked_for_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "spotwright.adapters.plots.timeline"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr("spotwright.adapters.plots.timeline", raising=False)
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_WithoutMatplotlib(), *sys.meta_path])

    done = spotwright_here("simulate", tmp_path / "no-such-job.yaml", "--plot", tmp_path / "a.png")

    assert (done.returncode, done.stdout) == (1, "")
    assert "--plot FILE.png needs the 'plot' extra" in done.stderr


class _WithoutMatplotlib(MetaPathFinder):
    """An installation without the extra for pictures."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
