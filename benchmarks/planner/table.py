"""Rows of searches against the time they may take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.planner.timing import Run
from benchmarks.table import print_table

_GAP_ASKED = 1e-3 * (1 + 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Searches of one kind; all have to close their gap within the target."""

    what: str
    runs: Sequence[Run]
    target_s: float | None = None  # of the worst; None: no target is set
    median_target_s: float | None = None
    left_out: int = 0  # searches that were not tried, after several of the kind had not closed
    rivals: Mapping[str, str] = field(default_factory=dict)

    @property
    def wall_s(self) -> list[float]:
        """Wall times."""
        return [run.wall_s for run in self.runs]

    @property
    def open_count(self) -> int:
        """Searches that were stopped before they had proved their gap."""
        return sum(not run.closed or run.gap_fraction > _GAP_ASKED for run in self.runs)

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        late = f", {self.open_count} open" if self.open_count else ""
        late += f", {self.left_out} not tried" if self.left_out else ""
        if self.target_s is None:
            return "no target" + late
        typical = self.median_target_s or self.target_s
        in_time = max(self.wall_s) <= self.target_s and median(self.wall_s) <= typical
        return "met" if in_time and not late else "missed" + late

    @property
    def target(self) -> str:
        """The target as text."""
        if self.target_s is None:
            return "-"
        typical = f"{self.median_target_s:g} / " if self.median_target_s else ""
        return f"{typical}{self.target_s:g}"


HEADER = (
    "case", "runs", "nodes", "types", "boxes", "wall s median / worst", "CPU s", "gap %",
    "target s", "verdict", "rivals",
)  # fmt: skip


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text."""
    runs = row.runs
    return (
        row.what,
        str(len(runs)),
        _span([run.nodes for run in runs]),
        _span([run.types for run in runs]),
        f"{median([run.solution.box_count for run in runs]):.0f}",
        f"{median(row.wall_s):.2f} / {max(row.wall_s):.2f}",
        f"{median([run.cpu_s for run in runs]):.2f} / {max(run.cpu_s for run in runs):.2f}",
        f"{100 * max(run.gap_fraction for run in runs):.2f}",
        row.target,
        row.verdict,
        "; ".join(f"{name} {value}" for name, value in row.rivals.items()) or "-",
    )


def print_rows(title: str, rows: Iterable[Row]) -> None:
    """Print a table of searches."""
    print_table(title, HEADER, [cells(row) for row in rows])


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}-{high}"
