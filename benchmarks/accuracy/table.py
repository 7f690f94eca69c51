"""A figure, the target it has to meet, and what rivals reach on the same rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of an accuracy report; smaller is better."""

    what: str
    unit: str
    ours: float
    target: float
    rivals: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.ours <= self.target


def print_rows(rows: Iterable[Row]) -> None:
    """Print rows under one another, rivals and notes at the end of each."""
    listed = list(rows)
    width = max((len(row.what) for row in listed), default=0)
    for row in listed:
        rivals = ", ".join(f"{name} {value:.2f}" for name, value in row.rivals.items())
        parts = [part for part in (f"rivals: {rivals}" if rivals else "", row.note) if part]
        print(
            f"{row.what:<{width}}  {row.ours:7.2f} {row.unit:<4} target {row.target:g} "
            f"{'met   ' if row.met else 'MISSED'}  {'; '.join(parts)}".rstrip()
        )
