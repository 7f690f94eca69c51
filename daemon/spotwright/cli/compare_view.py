"""Fleets side by side, as JSON and as a table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spotwright.cli.fleet_text import fleet_text
from spotwright.cli.prediction_view import prediction_json
from spotwright.cli.terminal import console, print_table
from spotwright.domain.prediction import Prediction
from spotwright.domain.questions import ComparedFleet, cheapest
from spotwright.domain.units import format_duration, format_usd

_ROWS: dict[str, Callable[[Prediction], str]] = {
    "duration": lambda p: format_duration(p.duration_s.mid),
    "cost": lambda p: format_usd(p.cost_usd.mid) if p.cost_usd else "-",
    "P(deadline met)": lambda p: _chance(p.deadline_probability),
    "with model error": lambda p: _chance(p.overall_deadline_probability),
    "samples/s": lambda p: f"{p.samples_per_s:,.1f}",
    "iteration": lambda p: format_duration(p.iteration_s.mid),
    "bottleneck": lambda p: p.bottleneck.replace("_", " "),
}


def comparison_json(fleets: Sequence[ComparedFleet]) -> dict[str, Any]:
    """Return every prediction as `predict --json` has it, and which fleet is the cheapest."""
    return {"fleets": [_fleet_json(fleet) for fleet in fleets], "cheapest": cheapest(fleets)}


def print_comparison(fleets: Sequence[ComparedFleet]) -> None:
    """Print a column for each fleet, then what each of them breaks."""
    out, best = console(), cheapest(fleets)
    for number, fleet in enumerate(fleets, 1):
        out.print(f"fleet {number}: {fleet_text(fleet.prediction.fleet)}")
    out.print()
    columns = [f"fleet {n}{' (cheapest)' if n - 1 == best else ''}>" for n in _numbers(fleets)]
    rows = [(name, *(show(f.prediction) for f in fleets)) for name, show in _ROWS.items()]
    broken = ("broken limits", *(str(len(fleet.broken) or "-") for fleet in fleets))
    print_table(("figure", *columns), [*rows, broken])
    out.print()
    for number, fleet in enumerate(fleets, 1):
        for text in fleet.broken:
            out.print(f"fleet {number}: {text}")
    if best is None:
        out.print("none of them meets the goal and keeps the limits")


def _numbers(fleets: Sequence[ComparedFleet]) -> range:
    return range(1, len(fleets) + 1)


def _fleet_json(fleet: ComparedFleet) -> dict[str, Any]:
    told = replace(fleet.prediction, notes=(*fleet.broken, *fleet.prediction.notes))
    return prediction_json(told) | {"broken_limits": list(fleet.broken)}


def _chance(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:.1%}"
