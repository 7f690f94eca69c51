"""See a running job's fleet in what its agents have sent.

A host is what EC2 calls an instance, however many agents run on it. It is there until all of them
have been silent for 30 s, by the daemon's clock and while the daemon itself has listened for that
long. What a plan does not ask for is not part of the fleet: such hosts are on their way out.

A host without a step of its own, while others make some, has yet to begin; but not for ever. It may
be that only one process of the group tells its steps, or that training does not come up there:
either way the fleet is as whole as it gets, and its speed says the rest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from spotwright.domain.job_run import JobRun
from spotwright.domain.offer import Market, Pool
from spotwright.domain.planned_run import PlannedRun
from spotwright.domain.steering import JobView, NodeState, NodeView
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.follow_job import SILENT_AFTER_S

_STARTS_S = 60.0  # that a host which is seen needs until it trains
_BEGINS_WITHIN_S = 900.0  # that a host may take to make a step, start-up and data included
_OVERDUE_S = 60.0  # that a host may live on after the time it was to go
_SILENT = timedelta(seconds=SILENT_AFTER_S)
_MARKETS = {str(market): market for market in Market}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One instance and the agents on it."""

    node_id: str
    pool: Pool
    agents: tuple[AgentRecord, ...]


class Seen(NamedTuple):
    """A fleet as it is seen."""

    view: JobView
    hosts: tuple[Host, ...]  # that are there, and paid for
    leaving_until: dict[str, float]  # when nodes are to go, seconds since 1970
    starting_since: dict[str, float]  # since when nodes have yet to make a step, likewise
    was_seen: bool  # some host was, though perhaps none is there now


def view_job(
    job: JobRun,
    planned: PlannedRun,
    agents: Sequence[AgentRecord],
    *,
    now: datetime,
    up_since: datetime,
    leaving_until: Mapping[str, float],
    starting_since: Mapping[str, float],
) -> Seen:
    """Return what is seen of a job that has started.

    Args:
        job: as it stands.
        planned: its current plan.
        agents: all that work for it.
        now: the daemon's clock.
        up_since: when the daemon began to listen.
        leaving_until: from the look before.
        starting_since: from the look before.
    """
    time_s = max(0.0, (now - (job.start_time or now)).total_seconds())
    hosts = hosts_of(agents, now=now, up_since=up_since)
    until = _leaving_until(hosts, leaving_until, now)
    since = _starting_since(hosts, starting_since, now)
    latest_s = now.timestamp() - _BEGINS_WITHIN_S
    starting = {node_id for node_id, since_s in since.items() if since_s > latest_s}
    nodes = [
        NodeView(
            node_id=host.node_id,
            pool=host.pool,
            state=_state(host, until, starting),
            ready_s=time_s + _STARTS_S,
        )
        for host in hosts
    ]
    view = JobView(
        time_s=time_s,
        done_fraction=job.progress_fraction or job.course.begun_fraction,
        spent_usd=job.course.spent_usd or 0.0,
        nodes=tuple(_asked_for(nodes, planned.workers)),
        asked=planned.workers,
        servers=planned.servers,
        prices_usd_per_hour=planned.prices_usd_per_hour,
    )
    was_seen = any(_pool([agent]) is not None for agent in agents)
    return Seen(view, hosts, until, since, was_seen)


def hosts_of(
    agents: Iterable[AgentRecord], *, now: datetime, up_since: datetime
) -> tuple[Host, ...]:
    """Return the hosts that are there, by name."""
    found: dict[str, list[AgentRecord]] = {}
    for agent in agents:
        found.setdefault(_node_id(agent), []).append(agent)
    hosts = []
    for node_id, mine in sorted(found.items()):
        pool = _pool(mine)
        if pool is not None and any(_is_there(agent, now, up_since) for agent in mine):
            hosts.append(Host(node_id=node_id, pool=pool, agents=tuple(mine)))
    return tuple(hosts)


def silent_nodes(
    agents: Iterable[AgentRecord], *, now: datetime, up_since: datetime
) -> frozenset[str]:
    """Return the nodes that were there and are not any more, though they may still be paid for."""
    there, known = set(), set()
    for agent in agents:
        node_id = _node_id(agent)
        known.add(node_id)
        if _is_there(agent, now, up_since):
            there.add(node_id)
    return frozenset(known - there)


def rented(seen: Seen, planned: PlannedRun) -> dict[Pool, int]:
    """Return the nodes that are paid for; of a fleet that was never seen, those of the plan.

    The servers of the plan are taken to be there, whether or not they run agents.
    """
    if not seen.was_seen:
        return dict(Counter(planned.workers) + Counter(planned.servers))
    return dict(Counter(host.pool for host in seen.hosts) | Counter(planned.servers))


def unpriced(nodes: Mapping[Pool, int], prices: Mapping[Pool, float]) -> frozenset[Pool]:
    """Return the pools of nodes whose price is not known."""
    return frozenset(nodes.keys() - prices.keys())


def usd_per_hour(nodes: Mapping[Pool, int], prices: Mapping[Pool, float]) -> float:
    """Return the rent of nodes whose prices are all known."""
    return sum(prices[pool] * count for pool, count in nodes.items())


def _node_id(agent: AgentRecord) -> str:
    return agent.facts.instance_id or agent.facts.agent_id


def _pool(agents: Sequence[AgentRecord]) -> Pool | None:
    """Return the pool of a host; None where its agents do not tell."""
    for agent in agents:
        facts = agent.facts
        market = _MARKETS.get(facts.market)
        if facts.instance_type and facts.zone and market is not None:
            return Pool(facts.instance_type, facts.zone, market)
    return None


def _is_there(agent: AgentRecord, now: datetime, up_since: datetime) -> bool:
    if agent.last_seen is None:
        return bool(agent.session_id)
    return now - max(agent.last_seen, up_since) <= _SILENT


def _leaving_until(
    hosts: Iterable[Host], before: Mapping[str, float], now: datetime
) -> dict[str, float]:
    """Return when hosts are to go.

    A notice that is gone before its time was taken back; after it, it has run out.
    """
    found, now_s = {}, now.timestamp()
    for host in hosts:
        notices = [agent.notice for agent in host.agents if agent.notice is not None]
        deadlines = [n.deadline for n in notices if n.kind == "interruption" and n.deadline]
        told_s = before.get(host.node_id)
        if deadlines:
            found[host.node_id] = min(deadlines).timestamp()
        elif told_s is not None and told_s <= now_s < told_s + _OVERDUE_S:
            found[host.node_id] = told_s
    return found


def _starting_since(
    hosts: Iterable[Host], before: Mapping[str, float], now: datetime
) -> dict[str, float]:
    """Return since when hosts are there that made no step while others do."""
    steps = {host.node_id: any(agent.latest_step for agent in host.agents) for host in hosts}
    if not any(steps.values()):
        return {}
    return {
        node_id: before.get(node_id, now.timestamp()) for node_id, made in steps.items() if not made
    }


def _state(host: Host, until: Mapping[str, float], starting: Set[str]) -> NodeState:
    kinds = {agent.notice.kind for agent in host.agents if agent.notice is not None}
    if "interruption" in kinds or host.node_id in until:
        return NodeState.LEAVING
    if "hint" in kinds:
        return NodeState.HINTED
    return NodeState.STARTING if host.node_id in starting else NodeState.TRAINING


def _asked_for(nodes: Iterable[NodeView], asked: Mapping[Pool, int]) -> Iterable[NodeView]:
    """Return those that leave, and of the others no more than are asked for."""
    counts: Counter[Pool] = Counter()
    for node in sorted(nodes, key=lambda node: node.state is NodeState.STARTING):
        if node.state is NodeState.LEAVING:
            if node.pool in asked:
                yield node
        elif counts[node.pool] < asked.get(node.pool, 0):
            counts[node.pool] += 1
            yield node
