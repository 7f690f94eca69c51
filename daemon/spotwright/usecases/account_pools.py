"""Account for each pool of a job, as planned and as granted.

    planned_usd = node_count * price * planned duration
    actual_usd  = sum of price * hours over the spans in which its nodes were rented

Hours in a pool whose price the plan does not have are counted, and not priced.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from spotwright.domain.accounts import NodeSpan, PoolAccount
from spotwright.domain.job_run import Event
from spotwright.domain.ledger import SILENCE, RentedPool
from spotwright.domain.planned_run import PlannedNodes, PlannedRun
from spotwright.usecases.rented_spans import below_fraction, spent_usd

_NOTICE, _WITHDRAWN = "interruption-notice", "notice-withdrawn"

Period = tuple[datetime, datetime]


@dataclass(slots=True, kw_only=True)
class _Sheet:
    """What belongs to one pool."""

    nodes: list[PlannedNodes] = field(default_factory=list)
    spans: list[NodeSpan] = field(default_factory=list)

    @property
    def planned_count(self) -> int:
        return sum(group.node_count for group in self.nodes)

    @property
    def planned_usd_per_hour(self) -> float:
        return sum(group.node_count * group.price_usd_per_hour for group in self.nodes)

    @property
    def node_hours(self) -> float:
        return sum(span.node_hours for span in self.spans)

    @property
    def actual_usd(self) -> float | None:
        if any(span.price_usd_per_hour is None for span in self.spans):
            return None
        return spent_usd(self.spans)

    @property
    def price_usd_per_hour(self) -> float | None:
        """The planned price, or else the mean that was paid."""
        if self.nodes:
            return self.nodes[0].price_usd_per_hour
        paid = self.actual_usd
        return paid / self.node_hours if paid is not None and self.node_hours else None


def account_pools(
    planned: PlannedRun,
    spans: Sequence[NodeSpan],
    events: Sequence[Event],
    *,
    training: Period,
) -> tuple[PoolAccount, ...]:
    """Return the pools of the plan in its order, then others by name.

    Args:
        planned: what was to be rented.
        spans: what was.
        events: of the job, oldest first.
        training: from the first progress to the end of the accounts.
    """
    sheets = _sheets(planned.nodes, spans)
    interrupted = _interruptions(spans, events)
    markets: dict[tuple[str, str], set[str]] = defaultdict(set)
    for group in planned.nodes:
        markets[group.pool.instance_type, group.pool.zone].add(group.pool.market)
    return tuple(
        PoolAccount(
            instance_type=pool.instance_type,
            zone=pool.zone,
            market=pool.market,
            planned_market=pool.market
            if sheet.nodes
            else "/".join(sorted(markets[pool.instance_type, pool.zone])) or None,
            role=" + ".join(sorted({group.role for group in sheet.nodes}, reverse=True)),
            planned_node_count=sheet.planned_count,
            price_usd_per_hour=sheet.price_usd_per_hour,
            planned_usd=sheet.planned_usd_per_hour * planned.duration_s / 3600
            if sheet.nodes
            else None,
            granted_node_hours=sheet.node_hours,
            actual_usd=sheet.actual_usd if spans else None,
            interruption_count=interrupted.get(pool, 0),
            below_planned_fraction=_below(sheet, training) if spans else None,
        )
        for pool, sheet in sheets.items()
    )


def _sheets(
    nodes: Iterable[PlannedNodes], spans: Iterable[NodeSpan]
) -> Mapping[RentedPool, _Sheet]:
    sheets: dict[RentedPool, _Sheet] = defaultdict(_Sheet)
    for group in nodes:
        sheets[group.pool].nodes.append(group)
    for span in sorted(spans, key=lambda span: span.pool):
        sheets[span.pool].spans.append(span)
    return sheets


def _below(sheet: _Sheet, training: Period) -> float | None:
    if not sheet.nodes:
        return None
    start, end = training
    return below_fraction(sheet.spans, node_count=sheet.planned_count, start=start, end=end)


def _interruptions(spans: Sequence[NodeSpan], events: Sequence[Event]) -> Mapping[RentedPool, int]:
    """Count the nodes of each pool that a cloud took away, each once, however often it said so."""
    by_agent: dict[str, list[NodeSpan]] = defaultdict(list)
    for span in spans:
        by_agent[span.agent_id].append(span)
    taken: dict[tuple[str, datetime], RentedPool] = {}
    for event in events:
        if event.kind not in (_NOTICE, _WITHDRAWN):
            continue
        # A node's first words may come before it is looked at for the first time.
        begun = event.time + SILENCE
        own = [s for s in by_agent[event.facts.get("agent_id", "")] if s.start_time <= begun]
        if own and event.kind == _NOTICE:
            taken[own[-1].agent_id, own[-1].start_time] = own[-1].pool
        elif own:
            taken.pop((own[-1].agent_id, own[-1].start_time), None)
    return Counter(taken.values())
