"""Where an agent's certificate is: the layout that `spotwright certs issue` writes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self


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
