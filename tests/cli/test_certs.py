"""`spotwright certs`, as users run it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import python, spotwright, spotwright_here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tls"
    printed("init", "--dir", made, "--host", "head.example.org")
    return made


def printed(*arguments: str | Path) -> Any:
    done = spotwright_here("certs", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["certificates"]


def test_init_prints_what_it_made(tmp_path: Path) -> None:
    made = printed("init", "--dir", tmp_path / "tls", "--host", "head.example.org")

    assert [(c["file"], c["kind"], c["days_left"]) for c in made] == [
        ("ca", "ca", 3650.0),
        ("server", "server", 365.0),
        ("client", "client", 90.0),
    ]
    assert made[1]["hosts"] == ["head.example.org", "localhost", "127.0.0.1", "::1"]


def test_the_installed_command_shows_a_table(folder: Path) -> None:
    done = spotwright("certs", "show", "--dir", folder)

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["file", "kind", "name", "ends", "days", "left", "hosts"]
    assert [line.split()[0] for line in lines[1:]] == ["ca", "server", "client"]


def test_a_second_init_is_refused_and_force_replaces(folder: Path) -> None:
    before = printed("show", "--dir", folder)

    refused = spotwright_here("certs", "init", "--dir", folder)
    assert refused.returncode == 2
    assert "give --force" in refused.stderr
    assert printed("show", "--dir", folder) == before

    replaced = printed("init", "--dir", folder, "--force")
    assert {c["serial"] for c in replaced}.isdisjoint(c["serial"] for c in before)


@pytest.mark.parametrize(
    ("arguments", "file", "days"),
    [
        (("agent", "gpu-7"), "agents/gpu-7", 90.0),
        (("agent", "gpu-7", "--days", "7"), "agents/gpu-7", 7.0),
        (("client", "ci"), "client", 90.0),
        (("server", "--host", "10.0.0.5"), "server", 365.0),
    ],
)
def test_issue_makes_one_certificate(
    folder: Path, arguments: tuple[str, ...], file: str, days: float
) -> None:
    [made] = printed("issue", "--dir", folder, *arguments)

    assert (made["file"], made["days_left"], made["of_this_ca"]) == (file, days, True)
    assert made in printed("show", "--dir", folder)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("agent",), "name the agent"),
        (("server", "x"), "a server has no name"),
        (("agent", "../x"), "cannot name the agent"),
        (("agent", "x", "--host", "a"), "--host goes with server"),
        (("agent", "x", "--days", "4000"), "valid for 1 to 3650 days"),
        (("server", "--host", "a b"), "neither a DNS name nor an IP address"),
    ],
)
def test_a_wrong_request_is_exit_2_and_writes_nothing(
    folder: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    before = printed("show", "--dir", folder)

    done = spotwright_here("certs", "issue", "--dir", folder, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert printed("show", "--dir", folder) == before


def test_without_an_authority_issue_says_to_make_one(tmp_path: Path) -> None:
    done = spotwright_here("certs", "issue", "--dir", tmp_path, "agent", "gpu-7")

    assert done.returncode == 2
    assert f"certs init --dir {tmp_path}" in done.stderr


def test_renew_takes_what_ends_soon_what_is_named_or_all(folder: Path) -> None:
    printed("issue", "--dir", folder, "agent", "soon", "--days", "20")

    assert [c["file"] for c in printed("renew", "--dir", folder)] == ["agents/soon"]
    named = printed("renew", "--dir", folder, "server", "soon")
    assert [c["file"] for c in named] == ["server", "agents/soon"]
    everything = printed("renew", "--dir", folder, "--all")
    assert [c["file"] for c in everything] == ["server", "client", "agents/soon"]
    assert printed("renew", "--dir", folder, "--within", "10d") == []


def test_renew_with_nothing_to_do_says_so(folder: Path) -> None:
    done = spotwright_here("certs", "renew", "--dir", folder)

    assert (done.returncode, done.stdout) == (0, "")
    assert "ends within 30d" in done.stderr


def test_all_and_names_together_are_refused(folder: Path) -> None:
    done = spotwright_here("certs", "renew", "--dir", folder, "--all", "server")

    assert done.returncode == 2


def test_a_certificate_of_another_authority_is_marked(folder: Path) -> None:
    printed("issue", "--dir", folder, "agent", "gpu-7")
    printed("init", "--dir", folder, "--force")

    done = spotwright_here("certs", "show", "--dir", folder)

    [line] = [line for line in done.stdout.splitlines() if line.startswith("agents/gpu-7")]
    assert line.rstrip().endswith("not of this authority")


def test_without_the_daemon_extra_certs_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None; import spotwright.cli.entry as e; e.main()"
    )

    done = python(code, "certs", "show", "--dir", str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert "certs needs the 'daemon' extra: pip install 'spotwright[daemon]'" in done.stderr
