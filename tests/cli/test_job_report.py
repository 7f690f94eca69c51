"""`spotwright report`, against a daemon on loopback whose ledger is known."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from spotwright.domain.job_run import JobState, NewEvent
from spotwright.domain.ledger import RentedPool
from tests.adapters.report.page_tree import read_page
from tests.cli.command import spotwright_here
from tests.cli.small_daemon import SmallDaemon
from tests.usecases.example_fleet import ON_DEMAND, SPOT, entry
from tests.usecases.example_job_run import after, job_run

JOB = "resnet-1"


@pytest.fixture(scope="module")
def daemon() -> Iterator[SmallDaemon]:
    """Serve a job of an hour: two spot workers of three, one on-demand, a server of two hours."""
    with SmallDaemon() as daemon:
        job = replace(
            job_run(JOB, state=JobState.SUCCEEDED), end_time=after(3600), progress_fraction=1.0
        )
        notice = NewEvent(
            time=after(1000), kind="interruption-notice", text="gone", facts={"agent_id": "b"}
        )
        daemon.store.add_job(job, [notice])
        server = RentedPool("m5.xlarge", "use1-az4", "on-demand")
        daemon.store.write_ledger(
            [
                entry("a", 0, 3600, pool=SPOT, price=1.0),
                entry("b", 0, 1800, pool=SPOT, price=1.0),
                entry("c", 1800, 3600, pool=ON_DEMAND, price=None),
                entry("ps", -3600, 3600, pool=server, price=0.6),
            ]
        )
        yield daemon


def report(daemon: SmallDaemon, *arguments: str | Path) -> CompletedProcess[str]:
    return spotwright_here("report", JOB, *arguments, "--daemon", daemon.address)


def test_pools_stand_under_the_figures_with_what_they_were_planned_to_be(
    daemon: SmallDaemon,
) -> None:
    done = report(daemon)

    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if "@" in line}
    assert rows["m5.xlarge@use1-az4"][1:] == [
        *("on-demand", "on-demand", "1", "2.0", "0.0%", "0", "$0.6000", "$0.6000", "$1.20")
    ]
    spot = next(line.split() for line in done.stdout.splitlines() if "$3.00" in line)
    assert spot == [
        *("g5.xlarge@use1-az4", "spot", "spot", "3", "1.5", "100.0%", "1"),
        *("$1.00", "$3.00", "$1.50"),
    ]
    assert "0.5 node-hours of g5.xlarge in use1-az4 were on-demand where spot was" in done.stdout
    assert "0.5 node-hours are in pools that the plan has no price for; the others cost $2.70" in (
        done.stdout
    )


def test_csv_has_a_row_for_each_pool_and_empty_cells_for_what_is_not_known(
    daemon: SmallDaemon, tmp_path: Path
) -> None:
    done = report(daemon, "--csv", "-")
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))

    assert [(row["market"], row["planned_market"]) for row in rows] == [
        *(("spot", "spot"), ("on-demand", "on-demand"), ("on-demand", "spot"))
    ]
    assert {row["job_id"] for row in rows} == {JOB}
    assert [row["actual_usd"] for row in rows] == ["1.5", "1.2", ""]
    assert rows[2]["planned_usd"] == rows[2]["price_usd_per_hour"] == ""
    file = tmp_path / "pools.csv"
    assert report(daemon, "--csv", file).stderr == f"pools written to {file}\n"
    assert file.read_text() == done.stdout


def test_json_keeps_its_keys_and_has_pools_timeline_and_events(daemon: SmallDaemon) -> None:
    found = json.loads(report(daemon, "--json").stdout)

    assert {"job", "figures", "terms", "pools", "timeline"} <= found.keys()
    assert found["figures"]["duration_s"] == {"planned": 3600.0, "measured": 3600.0}
    assert found["figures"]["cost_so_far_usd"]["measured"] is None
    assert found["priced_usd"] == pytest.approx(2.7)
    assert found["unpriced_node_hours"] == pytest.approx(0.5)
    assert found["event_counts"] == {"interruption-notice": 1}
    assert [span["agent_id"] for span in found["timeline"]] == ["ps", "a", "b", "c"]
    assert found["pools"][0]["interruption_count"] == 1
    assert found["progress"][-1] == {"time": after(3600).isoformat(), "fraction": 1.0}


def test_html_is_one_whole_page(daemon: SmallDaemon, tmp_path: Path) -> None:
    file = tmp_path / "bill.html"
    done = report(daemon, "--html", file)

    assert (done.returncode, done.stderr) == (0, f"report written to {file}\n")
    assert "duration" in done.stdout
    page = read_page(file.read_text(encoding="utf-8"))
    assert page.one("h1").text == JOB
    assert len(list(page.all("svg", "chart"))) == 6


def test_two_results_do_not_share_stdout(daemon: SmallDaemon) -> None:
    done = report(daemon, "--csv", "-", "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert "both print on stdout" in done.stderr


def test_a_folder_that_is_not_there_is_told(daemon: SmallDaemon, tmp_path: Path) -> None:
    done = report(daemon, "--html", tmp_path / "absent" / "bill.html")

    assert done.returncode == 1
    assert "cannot write" in done.stderr
