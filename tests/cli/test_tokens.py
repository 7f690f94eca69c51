"""`spotwright tokens`, as users run it, on a SQLite store."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import python, spotwright, spotwright_here


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'daemon.db'}"


def printed(*arguments: str) -> Any:
    done = spotwright_here("tokens", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_token_is_all_that_create_prints_on_stdout(store: str) -> None:
    done = spotwright("tokens", "create", "ci", "--role", "planner", "--store", store)

    assert done.returncode == 0
    assert done.stdout.startswith("sw_")
    assert len(done.stdout.split()) == 1
    secret = done.stdout.strip().split("_", 2)[2]
    assert secret not in done.stderr


def test_a_token_is_shown_once_and_its_secret_is_not_in_the_store(
    store: str, tmp_path: Path
) -> None:
    made = printed("create", "ci", "--role", "viewer", "--expires", "90d", "--store", store)
    secret = made.pop("token").split("_", 2)[2]

    listed = spotwright_here("tokens", "list", "--store", store, "--json").stdout

    assert json.loads(listed) == {"tokens": [made]}
    assert secret not in listed
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_revoked_token_is_listed_as_such(store: str) -> None:
    made = printed("create", "ci", "--role", "viewer", "--store", store)

    printed("revoke", made["token_id"], "--store", store)

    [listed] = printed("list", "--store", store)["tokens"]
    assert listed["revoke_time"] is not None
    table = spotwright_here("tokens", "list", "--store", store).stdout
    assert "revoked on" in table


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("create", "gpu-7", "--role", "agent"), "certs issue"),
        (("create", "a b", "--role", "viewer"), "cannot be the name of a token"),
        (("create", "ci", "--role", "viewer", "--expires", "soon"), "--expires: cannot read"),
        (("revoke", "0123456789ab"), "no token '0123456789ab'"),
    ],
)
def test_a_wrong_request_is_exit_2_and_keeps_nothing(
    store: str, arguments: tuple[str, ...], complaint: str
) -> None:
    done = spotwright_here("tokens", *arguments, "--store", store)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert printed("list", "--store", store) == {"tokens": []}


def test_without_the_daemon_extra_tokens_says_what_to_install(store: str) -> None:
    code = (
        "import sys; sys.modules['sqlalchemy'] = None; import spotwright.cli.entry as e; e.main()"
    )

    done = python(code, "tokens", "list", "--store", store)

    assert (done.returncode, done.stdout) == (1, "")
    assert "tokens needs the 'daemon' extra: pip install 'spotwright[daemon]'" in done.stderr
