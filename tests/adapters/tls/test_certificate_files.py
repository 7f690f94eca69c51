"""Folders of certificates: what is made, renewed and found, and what is said of broken ones."""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.certificate_files import (
    ServerFiles,
    days_left,
    list_certificates,
    read_pair,
)
from spotwright.adapters.tls.issue_files import init_folder, issue, renew
from spotwright.domain.errors import BadInputError, OutsideWorldError, UnknownNameError

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
Break = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tls"
    init_folder(made, hosts=["head.example.org"], now=NOW)
    issue_agent(made, "gpu-7")
    return made


def issue_agent(folder: Path, name: str, *, days: float = 90, now: datetime = NOW) -> None:
    request = CertificateRequest(kind=CertificateKind.AGENT, name=name, days=days)
    issue(folder, [request], now=now)


def serials(folder: Path) -> dict[str, str]:
    return {facts.file: facts.serial for facts in list_certificates(folder)}


def server_files(folder: Path, *, now: datetime = NOW) -> ServerFiles:
    return ServerFiles(folder, clock=lambda: now)


def test_a_new_folder_holds_what_its_readers_look_for(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    assert files == ["agents/gpu-7.crt", "agents/gpu-7.key", "ca.crt", "ca.key", "client.crt",
                     "client.key", "server.crt", "server.key"]  # fmt: skip


def test_keys_are_for_their_owner_alone(folder: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*.key")}

    assert modes == {0o600}
    assert folder.stat().st_mode & 0o777 == (folder / "agents").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    init_folder(tmp_path, hosts=(), now=NOW)

    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_the_list_names_everything_with_its_end(folder: Path) -> None:
    found = [
        (facts.file, facts.kind, facts.name, round(facts.days_left(NOW)), facts.of_this_ca)
        for facts in list_certificates(folder)
    ]

    assert [(file, kind, days, ours) for file, kind, _, days, ours in found] == [
        ("ca", "ca", 3650, True),
        ("server", "server", 365, True),
        ("client", "client", 90, True),
        ("agents/gpu-7", "agent", 90, True),
    ]
    assert found[3][2] == "gpu-7"


def test_an_authority_is_not_replaced_by_accident(folder: Path) -> None:
    before = serials(folder)

    with pytest.raises(BadInputError, match="--force"):
        init_folder(folder, hosts=(), now=NOW)

    assert serials(folder) == before


def test_an_authority_of_which_only_the_key_is_left_is_not_replaced_either(folder: Path) -> None:
    (folder / "ca.crt").unlink()

    with pytest.raises(BadInputError, match="--force"):
        init_folder(folder, hosts=(), now=NOW)


def test_a_wrong_host_leaves_no_half_made_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="neither"):
        init_folder(tmp_path / "tls", hosts=["a b"], now=NOW)

    assert not (tmp_path / "tls").exists()


def test_after_a_new_authority_renewing_mends_what_the_old_one_made(folder: Path) -> None:
    init_folder(folder, hosts=(), now=NOW, replace_ca=True)
    assert [f.file for f in list_certificates(folder) if not f.of_this_ca] == ["agents/gpu-7"]

    renewed = renew(folder, names=(), within_days=30, now=NOW)

    assert [facts.file for facts in renewed] == ["agents/gpu-7"]
    assert all(facts.of_this_ca for facts in list_certificates(folder))


def test_only_what_ends_soon_is_renewed(folder: Path) -> None:
    issue_agent(folder, "short", days=20)
    before = serials(folder)

    renewed = renew(folder, names=(), within_days=30, now=NOW)

    assert [facts.file for facts in renewed] == ["agents/short"]
    changed = {file for file, serial in serials(folder).items() if serial != before[file]}
    assert changed == {"agents/short"}


def test_a_renewed_certificate_says_the_same_for_as_long_as_before(folder: Path) -> None:
    issue_agent(folder, "short", days=20)
    old = {facts.file: facts for facts in list_certificates(folder)}
    later = NOW + timedelta(days=15)

    for new in renew(folder, names=["server", "short"], within_days=None, now=later):
        before = old[new.file]
        assert (new.kind, new.name, new.hosts) == (before.kind, before.name, before.hosts)
        assert new.expire_time - later == before.expire_time - NOW
        assert new.serial != before.serial


def test_renewing_many_times_does_not_change_how_long_they_last(folder: Path) -> None:
    for _ in range(5):
        [renewed] = renew(folder, names=["gpu-7"], within_days=None, now=NOW)

    assert renewed.expire_time == NOW + timedelta(days=90)


def test_renewing_all_leaves_the_authority_alone(folder: Path) -> None:
    before = serials(folder)

    renew(folder, names=(), within_days=None, now=NOW)

    after = serials(folder)
    assert [file for file in before if before[file] == after[file]] == ["ca"]


def test_renewing_an_unknown_name_says_which_one_was_meant(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gpu-7'"):
        renew(folder, names=["gpu-77"], within_days=None, now=NOW)


def test_readers_never_see_a_key_with_the_certificate_of_another(folder: Path) -> None:
    stop = threading.Event()
    failures: list[BadInputError] = []

    def read_on() -> None:
        while not stop.is_set():
            try:
                read_pair(folder, "agents/gpu-7")
            except BadInputError as error:
                failures.append(error)

    reader = threading.Thread(target=read_on)
    reader.start()
    for _ in range(50):
        issue_agent(folder, "gpu-7")
    stop.set()
    reader.join()

    assert failures == []


def test_a_write_that_fails_leaves_the_old_pair_and_no_rest(folder: Path) -> None:
    before = serials(folder)
    (folder / "agents" / "gpu-8.key").mkdir()  # a key cannot be put where a folder is

    with pytest.raises(OutsideWorldError, match=r"cannot write .*gpu-8\.key"):
        issue_agent(folder, "gpu-8")

    assert serials(folder) == before
    assert not list(folder.rglob("*.unfinished"))


def test_a_server_reads_its_key_certificate_and_authority(folder: Path) -> None:
    names = ("server.key", "server.crt", "ca.crt")

    assert server_files(folder).read() == tuple((folder / name).read_bytes() for name in names)


def test_a_daemon_needs_no_key_of_the_authority(folder: Path) -> None:
    (folder / "ca.key").unlink()

    assert server_files(folder).read()[2] == (folder / "ca.crt").read_bytes()


@pytest.mark.parametrize("name", ["ca.crt", "server.crt", "server.key"])
def test_replacing_a_file_changes_the_stamp_and_reading_does_not(folder: Path, name: str) -> None:
    files = server_files(folder)
    before = files.stamp()
    files.read()
    assert files.stamp() == before

    copy = folder / "copy"
    copy.write_bytes((folder / name).read_bytes())
    copy.replace(folder / name)

    assert files.stamp() != before


def _put_other_key(folder: Path) -> None:
    (folder / "server.key").write_bytes((folder / "client.key").read_bytes())


def _put_agent(folder: Path) -> None:
    for ending in ("key", "crt"):
        (folder / f"server.{ending}").write_bytes((folder / f"agents/gpu-7.{ending}").read_bytes())


def _put_other_authority(folder: Path) -> None:
    init_folder(folder / "other", hosts=(), now=NOW)
    (folder / "ca.crt").write_bytes((folder / "other" / "ca.crt").read_bytes())


BROKEN: list[tuple[Break, str]] = [
    (lambda f: (f / "server.crt").unlink(), r"server\.crt is missing; run .*certs issue --dir"),
    (lambda f: (f / "server.key").unlink(), r"server\.key is missing; run .*issue .* server"),
    (lambda f: (f / "ca.crt").unlink(), r"ca\.crt is missing; .*certs init --dir .* or copy"),
    (lambda f: (f / "server.crt").write_text("x"), r"server\.crt is not a usable certificate"),
    (lambda f: (f / "server.crt").write_bytes(b""), r"server\.crt is not a usable certificate"),
    (lambda f: (f / "server.key").write_text("x"), r"server\.key is not an ECDSA key"),
    (_put_other_key, r"server\.key does not belong to server\.crt"),
    (_put_agent, r"server\.crt is a certificate of kind agent, not server"),
    (_put_other_authority, r"server\.crt was not made by .*ca\.crt; run .*certs renew"),
]


@pytest.mark.parametrize(("spoil", "complaint"), BROKEN)
def test_a_folder_that_cannot_be_served_from_says_what_to_run(
    folder: Path, spoil: Break, complaint: str
) -> None:
    spoil(folder)

    with pytest.raises(BadInputError, match=complaint):
        server_files(folder).read()


def test_an_expired_server_certificate_says_since_when_and_what_to_run(folder: Path) -> None:
    late = NOW + timedelta(days=365)

    with pytest.raises(BadInputError, match=r"ended on 2027-11-18 12:00 UTC; run .*certs renew"):
        server_files(folder, now=late).read()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_key_that_may_not_be_read_points_at_its_permissions(folder: Path) -> None:
    (folder / "server.key").chmod(0)

    with pytest.raises(BadInputError, match="check its owner and permissions"):
        server_files(folder).read()


def test_a_file_that_is_a_folder_is_told_apart_from_a_missing_one(folder: Path) -> None:
    (folder / "server.key").unlink()
    (folder / "server.key").mkdir()

    with pytest.raises(BadInputError, match="cannot be read"):
        server_files(folder).read()


def test_days_left_are_those_of_the_files_that_can_be_read(folder: Path) -> None:
    (folder / "client.crt").write_text("x")

    left = days_left(folder, now=NOW + timedelta(days=5))

    assert left == {"ca": 3645.0, "server": 360.0}
