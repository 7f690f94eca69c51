"""A folder of certificates as it is found: what can be used, and what to run where it cannot.

ca.crt  ca.key          the authority; its key stays where certificates are made
server.crt  server.key  of the daemon
client.crt  client.key  of people and CI
agents/ID.crt  ID.key   of one agent each
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from spotwright.adapters.tls.authority import Authority, CertificateKind, KeyPair
from spotwright.adapters.tls.certificate_facts import CertificateFacts, facts_of
from spotwright.domain.errors import BadInputError

CA, SERVER, CLIENT, AGENTS = "ca", "server", "client", "agents"
_PAIR_READ_COUNT = 5
_BETWEEN_READS_S = 0.02


class FileStamp(NamedTuple):
    """What changes when a file is replaced."""

    inode: int
    modify_time_ns: int
    size_bytes: int


class ServerFiles:
    """What a daemon needs of its folder, read anew whenever asked."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime]) -> None:
        self._folder, self._clock = folder, clock

    def stamp(self) -> tuple[FileStamp | None, ...]:
        """Return something that differs once a file was replaced; None for one that is missing."""
        names = ("ca.crt", "server.crt", "server.key")
        return tuple(_stamp(self._folder / name) for name in names)

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Return key, certificate and authority, as PEM.

        Raises:
            BadInputError: one is missing, unreadable, expired or not made by this authority.
        """
        authorities = read_certificates(self._folder, CA)
        pair = read_pair(self._folder, SERVER)
        facts = _facts(self._folder, SERVER, pair.certificate, authorities=authorities)
        _check_usable(self._folder, facts, now=self._clock())
        return pair.key, pair.certificate, _read(self._folder, "ca.crt")


def read_pair(folder: Path, file: str) -> KeyPair:
    """Return a certificate and its key.

    A renewal renames the new key into place and right after it the new certificate. Who reads in
    between finds two that do not belong together, and reads again.

    Raises:
        BadInputError: one is missing or unreadable, or they do not belong together.
    """
    for attempt in range(_PAIR_READ_COUNT):
        if attempt:
            time.sleep(_BETWEEN_READS_S)
        pair = KeyPair(_read(folder, f"{file}.crt"), _read(folder, f"{file}.key"))
        certificate = _parsed(folder, file, pair.certificate)[0]
        key = _parsed_key(folder, file, pair.key)
        if _encoded(certificate.public_key()) == _encoded(key.public_key()):
            return pair
    raise BadInputError(
        f"{folder / file}.key does not belong to {file}.crt; {_issuing(folder, file)}"
    )


def read_certificates(folder: Path, file: str) -> Sequence[x509.Certificate]:
    """Return the certificates of a file, one at least: ca.crt may hold a former authority, too."""
    return _parsed(folder, file, _read(folder, f"{file}.crt"))


def open_authority(folder: Path) -> Authority:
    """Return the authority of a folder, able to issue."""
    pair = read_pair(folder, CA)
    return Authority(_parsed(folder, CA, pair.certificate)[0], _parsed_key(folder, CA, pair.key))


def list_certificates(folder: Path) -> Sequence[CertificateFacts]:
    """Return every certificate of a folder: authority, server, client, agents by name."""
    agents = sorted(f"{AGENTS}/{path.stem}" for path in (folder / AGENTS).glob("*.crt"))
    present = [name for name in (SERVER, CLIENT) if (folder / f"{name}.crt").exists()]
    return read_facts(folder, (CA, *present, *agents))


def read_facts(folder: Path, files: Sequence[str]) -> Sequence[CertificateFacts]:
    """Return what these certificates say."""
    authorities = read_certificates(folder, CA)
    return [
        _facts(folder, file, _read(folder, f"{file}.crt"), authorities=authorities)
        for file in files
    ]


def days_left(folder: Path, *, now: datetime) -> dict[str, float]:
    """Return the days until ca, server and client certificate end, of those that can be read."""
    left = {}
    for file in (CA, SERVER, CLIENT):
        try:
            certificate = read_certificates(folder, file)[0]
        except BadInputError:
            continue  # whoever needs it says so
        left[file] = facts_of(file, certificate, authorities=()).days_left(now)
    return left


def _facts(
    folder: Path, file: str, pem: bytes, *, authorities: Sequence[x509.Certificate]
) -> CertificateFacts:
    try:
        return facts_of(file, _parsed(folder, file, pem)[0], authorities=authorities)
    except ValueError as error:
        raise BadInputError(_unreadable(folder, file, str(error))) from error


def _check_usable(folder: Path, facts: CertificateFacts, *, now: datetime) -> None:
    path, renewal = folder / f"{facts.file}.crt", f"run {_renewing(folder, facts.file)}"
    if facts.kind != CertificateKind.SERVER:
        raise BadInputError(
            f"{path} is a certificate of kind {facts.kind}, not server; "
            f"{_issuing(folder, facts.file)}"
        )
    if not facts.of_this_ca:
        raise BadInputError(f"{path} was not made by {folder / 'ca.crt'}; {renewal}")
    if now >= facts.expire_time:
        raise BadInputError(f"{path} ended on {facts.expire_time:%Y-%m-%d %H:%M} UTC; {renewal}")


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInputError(
            f"{path} is missing; {_issuing(folder, name.rpartition('.')[0])}"
        ) from error
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be read ({error.strerror}); check its owner and permissions"
        ) from error


def _parsed(folder: Path, file: str, pem: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise BadInputError(_unreadable(folder, file, str(error))) from error


def _parsed_key(folder: Path, file: str, pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, ValueError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadInputError(
            f"{folder / file}.key is not an ECDSA key without a password; {_issuing(folder, file)}"
        )
    return key


def _unreadable(folder: Path, file: str, problem: str) -> str:
    return f"{folder / file}.crt is not a usable certificate ({problem}); {_issuing(folder, file)}"


def _issuing(folder: Path, file: str) -> str:
    if file == CA or not (folder / "ca.key").exists():
        return (
            f"make certificates with `spotwright certs init --dir {folder} --host NAME`, or copy "
            f"{file}.crt and {file}.key from where they are made"
        )
    words = {SERVER: "server --host NAME", CLIENT: "client NAME"}
    what = words.get(file) or f"agent {file.removeprefix(f'{AGENTS}/')}"
    return f"run `spotwright certs issue --dir {folder} {what}`"


def _renewing(folder: Path, file: str) -> str:
    return f"`spotwright certs renew --dir {folder} {file}` where ca.key is"


def _stamp(path: Path) -> FileStamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return FileStamp(found.st_ino, found.st_mtime_ns, found.st_size)


def _encoded(key: CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
