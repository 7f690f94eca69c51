"""When a certificate ends, read from its file without a library for certificates.

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE {
        version [0] OPTIONAL, serialNumber, signature, issuer,
        validity SEQUENCE { notBefore Time, notAfter Time }, ... } ... }

Over TLS a certificate that has ended looks like a daemon that is not there, so it is told here.
"""

import base64
import binascii
import time
from calendar import timegm
from pathlib import Path

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
_DAY_S = 86_400.0


class CertificateUnreadableError(Exception):
    """A certificate's end cannot be told; the text says why."""


def days_left(file: Path, *, now_unix_s: float | None = None) -> float:
    """Return the days until the first certificate of a PEM file ends; below 0: it has.

    Raises:
        CertificateUnreadableError: there is no such file, or no certificate in it.
    """
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise CertificateUnreadableError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CertificateUnreadableError(f"{file} is not a PEM file") from error
    now_s = time.time() if now_unix_s is None else now_unix_s
    try:
        return (not_after_unix_s(text) - now_s) / _DAY_S
    except (ValueError, IndexError, binascii.Error) as error:
        raise CertificateUnreadableError(f"{file} has no certificate: {error}") from error


def not_after_unix_s(pem: str) -> int:
    """Return when the first certificate of a PEM text ends; ValueError where there is none."""
    _, begin, rest = pem.partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    if not (begin and end):
        raise ValueError("nothing between BEGIN CERTIFICATE and END CERTIFICATE")
    certificate = _content(base64.b64decode("".join(body.split()), validate=True), _SEQUENCE)
    fields = _content(certificate, _SEQUENCE)
    skipped = 4 if fields[0] == _VERSION else 3  # up to the validity
    for _ in range(skipped):
        _, _, fields = _element(fields)
    _, _, last = _element(_content(fields, _SEQUENCE))
    tag, value, _ = _element(last)
    return _unix_s(tag, value.decode("ascii"))


def _content(data: bytes, tag: int) -> bytes:
    found, content, _ = _element(data)
    if found != tag:
        raise ValueError(f"tag {found:#x} where {tag:#x} should be")
    return content


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag, content and what comes after the first element."""
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise ValueError("it is cut off")
    return tag, data[start : start + length], data[start + length :]


def _unix_s(tag: int, text: str) -> int:
    if tag == _UTC_TIME:  # years 1950 to 2049
        century = "19" if text[:2] >= "50" else "20"
        return timegm(time.strptime(century + text, "%Y%m%d%H%M%SZ"))
    if tag == _GENERALIZED_TIME:
        return timegm(time.strptime(text, "%Y%m%d%H%M%SZ"))
    raise ValueError(f"tag {tag:#x} is not a time")
