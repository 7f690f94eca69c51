"""Where an agent's certificate is: the layout that `spotwright certs issue` writes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

_URI = b"\x86"  # how a certificate marks a name that is a URI; its length and itself follow


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """An agent's own certificate and key, and the authority that it trusts."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path, agent_id: str) -> Self:
        """Return the files of an agent in a TLS folder."""
        own = folder / "agents"
        return cls(folder / "ca.crt", own / f"{agent_id}.crt", own / f"{agent_id}.key")


def pair_problem(files: TlsFiles, agent_id: str) -> str:
    """Return why certificate, key and authority do not go together; empty: they do."""
    import ssl  # noqa: PLC0415  takes 6 MB, which `run` does without

    for path in (files.authority, files.certificate, files.key):
        if not path.is_file():
            return f"{path} is not there: `spotwright certs issue agent` makes it"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(files.authority)
        context.load_cert_chain(files.certificate, files.key, password=lambda: b"")
        certificate = ssl.PEM_cert_to_DER_cert(_first_pem(files.certificate.read_text("ascii")))
    except (ssl.SSLError, OSError, ValueError) as error:
        return f"{files.certificate} and its key, or {files.authority}, cannot be used: {error}"
    name = f"spiffe://spotwright/agent/{agent_id}".encode()
    if _URI + bytes([len(name)]) + name not in certificate:
        return f"{files.certificate} is of another agent, not of {agent_id}"
    return ""


def _first_pem(text: str) -> str:
    """Return the first certificate of a file; an issuer's may follow."""
    end = "-----END CERTIFICATE-----"
    return text[text.find("-----BEGIN CERTIFICATE-----") :].partition(end)[0] + end
