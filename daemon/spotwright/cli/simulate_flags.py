"""The flags of `spotwright simulate`, as they were written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateFlags:
    """What is asked for."""

    plan_file: Path | None
    policies: Sequence[str] | None
    traces: str
    prices: Path | None
    since: str | None
    until: str | None
    deflation: str | None
    runs: int
    seed: int
    processes: int
    ray: str | None
    plot: Path | None
    deadline: str | None
    budget: str | None
    as_json: bool
