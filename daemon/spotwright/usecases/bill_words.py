"""What the figures of a bill do not say by themselves, in words."""

from spotwright.domain.accounts import JobAccounts
from spotwright.domain.units import format_usd


def bill_notes(accounts: JobAccounts) -> list[str]:
    """Return where another market was granted than planned, and what has no price."""
    notes = [
        f"{pool.granted_node_hours:.1f} node-hours of {pool.instance_type} in {pool.zone} were "
        f"{pool.market} where {pool.planned_market} was planned"
        for pool in accounts.pools
        if pool.market and pool.planned_market not in (None, pool.market)
    ]
    if accounts.unpriced_node_hours:
        notes.append(
            f"{accounts.unpriced_node_hours:.1f} node-hours are in pools that the plan has no "
            f"price for; the others cost {format_usd(accounts.priced_usd)}"
        )
    return notes
