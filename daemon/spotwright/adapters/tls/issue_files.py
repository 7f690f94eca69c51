"""Certificates written to a folder: a new authority, one more certificate, those that end soon."""

import os
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from secrets import token_hex

from spotwright.adapters.tls.authority import (
    DEFAULT_DAYS,
    CertificateKind,
    CertificateRequest,
    KeyPair,
    make_authority,
)
from spotwright.adapters.tls.certificate_facts import CertificateFacts
from spotwright.adapters.tls.certificate_files import (
    AGENTS,
    CA,
    CLIENT,
    SERVER,
    list_certificates,
    open_authority,
    read_facts,
)
from spotwright.domain.errors import BadInputError, OutsideWorldError, UnknownNameError

SERVER_NAME = "daemon"


def init_folder(
    folder: Path, *, hosts: Sequence[str], now: datetime, replace_ca: bool = False
) -> Sequence[CertificateFacts]:
    """Make an authority, and with it a server and a client certificate.

    Raises:
        BadInputError: there is an authority already, and it is not to be replaced.
    """
    if not replace_ca and ((folder / "ca.crt").exists() or (folder / "ca.key").exists()):
        raise BadInputError(
            f"{folder} has an authority already, and a new one makes every certificate of the old "
            "one useless: add certificates with `spotwright certs issue`, or give --force"
        )
    server, client = CertificateKind.SERVER, CertificateKind.CLIENT
    requests = [
        CertificateRequest(
            kind=server, name=SERVER_NAME, days=DEFAULT_DAYS[server], hosts=tuple(hosts)
        ),
        CertificateRequest(kind=client, name=CLIENT, days=DEFAULT_DAYS[client]),
    ]
    _write_pair(folder, CA, make_authority(now=now))
    folder.chmod(0o700)  # it may have been there before
    return [*read_facts(folder, [CA]), *issue(folder, requests, now=now)]


def issue(
    folder: Path, requests: Sequence[CertificateRequest], *, now: datetime
) -> Sequence[CertificateFacts]:
    """Make certificates, each in place of the one that has its file now, if any."""
    authority = open_authority(folder)
    for request in requests:
        _write_pair(folder, _file_of(request), authority.issue(request, now=now))
    return read_facts(folder, [_file_of(request) for request in requests])


def renew(
    folder: Path, *, names: Collection[str], within_days: float | None, now: datetime
) -> Sequence[CertificateFacts]:
    """Make certificates anew that end soon or that another authority made; return the new ones.

    Each is again valid for as many days as it was. The authority itself is not renewed.

    Args:
        folder: where they are.
        names: server, client or the ids of agents; none: all of them.
        within_days: those that have more days left stay; None: none stays.
        now: the time.
    """
    found = {_short_name(facts): facts for facts in list_certificates(folder) if facts.file != CA}
    for name in names:
        if name not in found:
            raise UnknownNameError("certificate", name, known=found)
    asked = [facts for name, facts in found.items() if not names or name in names]
    due = [facts for facts in asked if _is_due(facts, within_days, now=now)]
    return issue(folder, [_same_again(facts) for facts in due], now=now)


def _short_name(facts: CertificateFacts) -> str:
    return facts.file.removeprefix(f"{AGENTS}/")


def _is_due(facts: CertificateFacts, within_days: float | None, *, now: datetime) -> bool:
    if within_days is None or not facts.of_this_ca:
        return True
    return facts.days_left(now) <= within_days


def _same_again(facts: CertificateFacts) -> CertificateRequest:
    if facts.kind not in set(CertificateKind):
        raise BadInputError(
            f"{facts.file}.crt is not one of ours (kind {facts.kind}); issue another in its place"
        )
    return CertificateRequest(
        kind=CertificateKind(facts.kind),
        name=facts.name,
        days=facts.valid_days,
        hosts=facts.hosts,
    )


def _file_of(request: CertificateRequest) -> str:
    if request.kind is CertificateKind.AGENT:
        return f"{AGENTS}/{request.name}"
    return SERVER if request.kind is CertificateKind.SERVER else CLIENT


def _write_pair(folder: Path, file: str, pair: KeyPair) -> None:
    """Put a pair in place, the key first: `read_pair` tells how readers cope in between."""
    key, certificate = folder / f"{file}.key", folder / f"{file}.crt"
    unfinished = [key.with_name(f".{token_hex(8)}.unfinished") for _ in pair]
    try:
        for place in (folder, key.parent):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(unfinished[0], pair.key, mode=0o600)
        _write(unfinished[1], pair.certificate, mode=0o644)
        unfinished[0].replace(key)
        unfinished[1].replace(certificate)
    except OSError as error:
        raise OutsideWorldError(f"cannot write {key}: {error.strerror}") from error
    finally:
        for path in unfinished:
            path.unlink(missing_ok=True)


def _write(path: Path, content: bytes, *, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
