"""What the outer process tells the one in the namespaces."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked for."""

    names: tuple[str, ...]
    scenarios: Path  # folder
    out: Path
    seconds: float
    seed: int
    owner_pid: int  # of the outer process

    def to_json(self) -> str:
        """Return it as one argument."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read it back."""
        told = json.loads(text)
        told |= {name: Path(told[name]) for name in ("scenarios", "out")}
        return cls(**told | {"names": tuple(told["names"])})
