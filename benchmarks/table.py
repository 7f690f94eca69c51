"""Tables of figures, beside their targets where they have any."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure."""

    what: str
    figure: str
    target: str = "-"
    is_met: bool | None = None  # None: no target is set

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        return {None: "no target", True: "met", False: "missed"}[self.is_met]


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """Print figures with their targets."""
    cells = [(row.what, row.figure, row.target, row.verdict) for row in rows]
    print_table(title, ("figure", "measured", "target", "verdict"), cells)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that is both aligned and valid Markdown."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    print(f"\n## {title}\n")
    _print_line(header, widths)
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        _print_line(row, widths)


def _print_line(line: Sequence[str], widths: Sequence[int]) -> None:
    padded = (f" {cell:<{width}} " for cell, width in zip(line, widths, strict=True))
    print("|" + "|".join(padded) + "|", flush=True)
