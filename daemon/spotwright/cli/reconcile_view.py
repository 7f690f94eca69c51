"""A rented fleet beside the one that was asked for, as a table and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spotwright.adapters.terraform.changes import ResourceChange
from spotwright.cli.terminal import console, print_table
from spotwright.domain.reconciliation import (
    Bill,
    ComparedPool,
    Difference,
    DifferenceKind,
    Reconciliation,
)
from spotwright.domain.units import format_usd

_FEW = 4  # instance ids that a line can hold; --json has them all
_COLUMNS = (
    "pool",
    "role",
    "market",
    "wanted>",
    "runs>",
    "as wanted>",
    "$/h planned>",
    "$/h billed>",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What AWS grants and bills, what Terraform would change, and what else is to be known."""

    reconciliation: Reconciliation
    drift: Sequence[ResourceChange] | None  # None: Terraform was not asked, or did not answer
    drift_problem: str | None  # why it did not
    notes: Sequence[str]

    @property
    def as_wanted(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.reconciliation.as_wanted and not self.drift and self.drift_problem is None

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, with what the comparison leaves out."""
        left_out = []
        if self.reconciliation.wanted.functions is not None:
            left_out.append("functions are billed per call and are not compared")
        if self.drift_problem is not None:
            left_out.append(f"drift is not known: {self.drift_problem}; --no-drift does not ask")
        return (*left_out, *self.notes)


def print_comparison(comparison: Comparison) -> None:
    """Print the pools, then each difference with what to do about it."""
    out, found = console(), comparison.reconciliation
    wanted = found.wanted
    out.print(f"{wanted.name} in {wanted.region}, plan {wanted.plan_id}: {_verdict(comparison)}")
    out.print()
    print_table(_COLUMNS, [*(_pool_row(pool) for pool in found.pools), _total_row(found)])
    for line in _lines(comparison):
        out.print(line)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON with stable keys."""
    found, drift = comparison.reconciliation, comparison.drift
    return {
        "fleet_name": found.wanted.name,
        "plan_id": found.wanted.plan_id,
        "region": found.wanted.region,
        "as_wanted": comparison.as_wanted,
        "usd_per_hour": _money_json(found.planned_usd_per_hour, found.billed),
        "pools": [_pool_json(pool) for pool in found.pools],
        "differences": [_difference_json(difference) for difference in found.differences],
        "drift": None
        if drift is None
        else [{"address": c.address, "action": c.action, "reason": c.reason} for c in drift],
        "notes": list(comparison.all_notes),
    }


def _verdict(comparison: Comparison) -> str:
    if comparison.as_wanted:
        return "as wanted"
    count = len(comparison.reconciliation.differences)
    parts = [f"{count} difference{'' if count == 1 else 's'}"] if count else []
    if comparison.drift:
        parts.append(f"{len(comparison.drift)} for Terraform to change")
    if comparison.drift_problem is not None:
        parts.append("drift not known")
    return ", ".join(parts)


def _pool_row(pool: ComparedPool) -> tuple[str, ...]:
    return (
        pool.wanted.key,
        pool.wanted.role,
        pool.wanted.market,
        str(pool.wanted.node_count),
        str(len(pool.nodes)),
        str(pool.granted_count),
        _amount(pool.planned_usd_per_hour),
        _billed(pool.billed),
    )


def _total_row(found: Reconciliation) -> tuple[str, ...]:
    return (
        "all under the fleet's name",
        "",
        "",
        str(sum(pool.wanted.node_count for pool in found.pools)),
        str(sum(len(pool.nodes) for pool in found.pools)),
        str(sum(pool.granted_count for pool in found.pools)),
        _amount(found.planned_usd_per_hour),
        _billed(found.billed),
    )


def _amount(usd_per_hour: float | None) -> str:
    return "unknown" if usd_per_hour is None else f"{usd_per_hour:.4f}"


def _billed(bill: Bill) -> str:
    known = bill.usd_per_hour is not None and not bill.is_complete
    return f"{'at least ' if known else ''}{_amount(bill.usd_per_hour)}"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield ""
    for difference in comparison.reconciliation.differences:
        yield f"differs: {difference.pool_key or 'no pool'}: {difference.text}"
        yield f"  to do: {difference.way_out}{_named(difference)}"
    for change in comparison.drift or ():
        why = f" ({change.reason})" if change.reason else ""
        yield f"drift: Terraform would {change.action} {change.address}{why}"
    if comparison.drift:
        yield f"  to do: {_drift_way_out(comparison)}"
    yield _bill_line(comparison.reconciliation)
    for text in comparison.all_notes:
        yield f"note: {text}"


def _named(difference: Difference) -> str:
    """Return whom the way out is about; a price is that of its pool, whichever nodes there are."""
    instance_ids = difference.instance_ids
    if not instance_ids or difference.kind is DifferenceKind.PRICE_UNKNOWN:
        return ""
    more = f" and {len(instance_ids) - _FEW} more" if len(instance_ids) > _FEW else ""
    return f" ({', '.join(instance_ids[:_FEW])}{more})"


def _bill_line(found: Reconciliation) -> str:
    billed, planned = found.billed, found.planned_usd_per_hour
    told = "not known" if billed.usd_per_hour is None else f"{format_usd(billed.usd_per_hour)}/h"
    least = "at least " if billed.usd_per_hour is not None and not billed.is_complete else ""
    due = "not known" if planned is None else f"{format_usd(planned)}/h"
    return f"rent: billed {least}{told}, planned {due} at the prices of now"


def _money_json(planned_usd_per_hour: float | None, billed: Bill) -> dict[str, Any]:
    return {
        "planned": planned_usd_per_hour,
        "billed": billed.usd_per_hour,
        "billed_is_complete": billed.is_complete,
    }


def _pool_json(pool: ComparedPool) -> dict[str, Any]:
    wanted = pool.wanted
    return {
        "pool": wanted.key,
        "role": wanted.role,
        "instance_type": wanted.instance_type,
        "zone": wanted.zone,
        "market": wanted.market,
        "wanted_count": wanted.node_count,
        "granted_count": pool.granted_count,
        "desired_count": pool.desired_count,
        "usd_per_hour": _money_json(pool.planned_usd_per_hour, pool.billed),
    }


def _difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "kind": difference.kind,
        "pool": difference.pool_key,
        "instance_ids": list(difference.instance_ids),
        "text": difference.text,
        "way_out": difference.way_out,
    }


def _drift_way_out(comparison: Comparison) -> str:
    kinds = {difference.kind for difference in comparison.reconciliation.differences}
    if DifferenceKind.NOT_IN_STATE in kinds:
        return "see first to what is not in the state, above"
    return "run `spotwright apply`, or `terraform apply` in the folder"
