"""What `serve` refuses before it starts anything."""

from pathlib import Path

import pytest

from spotwright.cli.serve import is_loopback
from tests.cli.command import spotwright_here


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--listen", "0.0.0.0:7443"], "no plaintext beyond it"),
        (["--listen", "db.example.org:7443"], "no plaintext beyond it"),
        (["--listen", "7443"], "--listen: write HOST:PORT"),
        (["--listen", "127.0.0.1:70000"], "--listen: write HOST:PORT"),
        (["--metrics", "9464"], "--metrics: write HOST:PORT"),
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


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.example.org", False),
    ],
)  # fmt: skip
def test_only_this_host_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
