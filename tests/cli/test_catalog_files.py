"""Which snapshot a command reads, and what it says of one it cannot read."""

import json
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.catalog.snapshot_file import bundled_path
from spotwright.domain.hardware import Cloud
from tests.cli.command import printed_json, spotwright

BUNDLED = bundled_path(Cloud.AWS)
REGIONS = json.loads(BUNDLED.read_text(encoding="utf-8"))["price_times"]


def _snapshot(**changes: Any) -> str:
    return json.dumps(json.loads(BUNDLED.read_text(encoding="utf-8")) | changes)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (BUNDLED.read_text(encoding="utf-8")[:20_000], "not a usable snapshot"),
        ("", "not a usable snapshot"),
        ("[]", "not a usable snapshot"),
        (_snapshot(schema_version=99), "written by a newer Spotwright (schema 99"),
        (bundled_path(Cloud.GCP).read_text(encoding="utf-8"), "describes gcp, not aws: give a"),
        (None, "no such file"),
    ],
)
def test_a_catalog_that_cannot_be_used_is_exit_2_and_named(
    tmp_path: Path, text: str | None, complaint: str
) -> None:
    file = tmp_path / "prices.json"
    if text is not None:
        file.write_text(text)

    done = spotwright("catalog", "list", "--catalog", file, "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: catalog {file}: ")
    assert complaint in done.stderr


def _dated(folder: Path, year: int) -> Path:
    file = folder / f"{year}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_snapshot(price_times=dict.fromkeys(REGIONS, f"{year}-01-01T00:00:00+00:00")))
    return file


def _year_read(home: Path, *flags: str | Path, **environment: str) -> int:
    done = spotwright(
        *("catalog", "show", "g5.xlarge", "--json", *flags),
        environment={"HOME": str(home), **environment},
    )
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["catalog_time"][:4])


def test_the_flag_wins_over_environment_file_refreshed_and_bundled(tmp_path: Path) -> None:
    assert _year_read(tmp_path) == 2026

    refreshed = _dated(tmp_path / ".local/share/spotwright/catalog", 2021)
    refreshed.rename(refreshed.with_name("aws.json"))
    assert _year_read(tmp_path) == 2021

    config = tmp_path / ".config/spotwright/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'catalog = "{_dated(tmp_path, 2022)}"\n')
    assert _year_read(tmp_path) == 2022

    from_environment = {"SPOTWRIGHT_CATALOG": str(_dated(tmp_path, 2023))}
    assert _year_read(tmp_path, **from_environment) == 2023

    assert _year_read(tmp_path, "--catalog", _dated(tmp_path, 2024), **from_environment) == 2024


@pytest.mark.parametrize(
    ("flags", "oldest"),
    [
        (["list", "--region", "us-east-1"], "2026-11-15"),
        (["list", "--region", "us-east-1", "--region", "us-west-2"], "2026-08-22"),
        (["list"], "2026-08-22"),
        (["list", "--type", "p2.xlarge", "--region", "us-east-1"], "2025-03-27"),
        (["show", "g5.xlarge"], "2026-08-22"),
        (["show", "p2.xlarge"], "2025-03-27"),
    ],
    ids=" ".join,
)
def test_after_a_partial_refresh_the_age_told_is_that_of_the_oldest_price_shown(
    tmp_path: Path, flags: list[str], oldest: str
) -> None:
    file = tmp_path / "aws.json"
    file.write_text(_snapshot(price_times=REGIONS | {"us-east-1": "2026-11-15T12:00:00+00:00"}))

    told = printed_json("catalog", *flags, "--catalog", file)
    shown = spotwright("catalog", *flags, "--catalog", file)

    assert told["catalog_time"].startswith(oldest)
    assert f"{len(told['offers'])} offers; prices of {oldest} or later" in shown.stderr


def test_show_tells_the_hardware_and_where_it_is_offered() -> None:
    found = printed_json("catalog", "show", "g4dn.12xlarge")

    assert (found["vcpu_count"], found["memory_gib"], found["gpu_count"]) == (48, 192, 4)
    assert (found["gpu"]["name"], found["gpu"]["memory_gib"]) == ("T4", 16)
    assert found["network_baseline_mbps"] == 50_000
    assert {offer["instance_type"] for offer in found["offers"]} == {"g4dn.12xlarge"}
    assert {offer["market"] for offer in found["offers"]} == {"spot", "on-demand"}


def test_show_as_text_names_the_type_its_facts_and_its_zones() -> None:
    shown = spotwright("catalog", "show", "g4dn.12xlarge").stdout

    assert all(fact in shown for fact in ("g4dn.12xlarge", "vcpu count", "48", "T4", "use1-az"))


def test_show_of_an_unknown_type_is_exit_2_with_the_nearest() -> None:
    done = spotwright("catalog", "show", "g4dn.12xlrge")

    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'g4dn.12xlarge'?" in done.stderr
