"""A plan of four spot workers at $0.50 and a server at $0.20 for an hour, and nodes seen of it."""

from dataclasses import replace

from spotwright.domain.ledger import LedgerEntry, RentedPool
from spotwright.domain.offer import Market, Pool
from spotwright.domain.planned_run import PlannedNodes, PlannedRun
from spotwright.domain.telemetry import AgentRecord
from tests.usecases.example_job_run import after, agent_record, planned_run

SPOT = RentedPool("g5.xlarge", "use1-az4", "spot")
ON_DEMAND = SPOT._replace(market="on-demand")
SERVER = RentedPool("m5.xlarge", "use1-az4", "on-demand")


PRICES = {Pool("g5.xlarge", "use1-az4", Market.SPOT): 0.5}


def planned_fleet() -> PlannedRun:
    workers = PlannedNodes(role="worker", pool=SPOT, node_count=4, price_usd_per_hour=0.5)
    server = PlannedNodes(role="ps", pool=SERVER, node_count=1, price_usd_per_hour=0.2)
    return replace(
        planned_run(),
        nodes=(workers, server),
        rent_usd_per_hour=2.2,
        cost_usd=2.2,
        prices_usd_per_hour=PRICES,
    )


def node(
    agent_id: str, *, seen_s: float = 0.0, market: str = "spot", instance_id: str = ""
) -> AgentRecord:
    record = agent_record(agent_id, last_seen=after(seen_s))
    facts = replace(
        record.facts,
        instance_type=SPOT.instance_type,
        zone=SPOT.zone,
        market=market,
        instance_id=instance_id or f"i-{agent_id}",
    )
    return replace(record, facts=facts)


def entry(
    agent_id: str,
    from_s: float,
    to_s: float,
    *,
    pool: RentedPool = SPOT,
    price: float | None = 0.5,
    instance_id: str | None = None,
) -> LedgerEntry:
    return LedgerEntry(
        job_id="resnet-1",
        agent_id=agent_id,
        start_time=after(from_s),
        end_time=after(to_s),
        instance_id=f"i-{agent_id}" if instance_id is None else instance_id,
        pool=pool,
        price_usd_per_hour=price,
    )
