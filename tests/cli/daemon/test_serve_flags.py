"""What `serve` refuses before it starts anything."""

from pathlib import Path

import pytest

from tests.cli.command import spotwright_here


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--listen", "0.0.0.0:7443"], "no plaintext beyond it"),
        (["--listen", "db.example.org:7443"], "no plaintext beyond it"),
        (["--listen", "7443"], "--listen: '7443' is no address; write HOST:PORT"),
        (["--listen", "127.0.0.1:70000"], "a port is a number from 0 to 65535"),
        (["--metrics", "9464"], "--metrics: '9464' is no address"),
        (["--raw-window", "soon"], "--raw-window: cannot read 'soon'"),
        (["--log-level", "loud"], "--log-level: debug, info, warning or error"),
        (["--store", "mysql://db/x"], "sqlite:///PATH or postgresql://"),
    ],
)
def test_what_cannot_be_served_is_bad_usage(tmp_path: Path, flags: list[str], problem: str) -> None:
    usual = [] if "--store" in flags else ["--store", f"sqlite:///{tmp_path / 'd.db'}"]

    ended = spotwright_here("serve", *usual, *flags)

    assert ended.returncode == 2
    assert problem in ended.stderr


def test_a_catalog_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    ended = spotwright_here("serve", "--catalog", tmp_path / "none.json")

    assert ended.returncode == 2
    assert "none.json: no such file" in ended.stderr
