"""What is told about a fleet that was looked at.

Notices of a cloud are in the log already, by agent, from the moment that they came in. For whoever
else is told of a steered job they are here by node, once the controller has seen them.
"""

from collections.abc import Iterator, Sequence, Set
from datetime import UTC, datetime

from spotwright.domain.job_run import NewEvent
from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView, NodeState, Trigger
from spotwright.usecases.advise_checkpoints import agents_of
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.view_job import Seen

_NOTICE_KINDS = {NodeState.LEAVING: "interruption-notice", NodeState.HINTED: "interruption-hint"}
_NOTICE_TEXTS = {
    NodeState.LEAVING: "the cloud will take {node} of {pool} away",
    NodeState.HINTED: "the cloud may take {node} of {pool} away",
}
# Notices and the start are in the log already; that time has passed is no news.
_SILENT = {
    Trigger.STARTED,
    Trigger.INTERRUPTION_NOTICE,
    Trigger.REBALANCE_HINT,
    Trigger.CHECK_DUE,
}
_TEXTS = {
    Trigger.NODE_LOST: "a node is gone",
    Trigger.NODE_RESIZED: "a node has become less, or is whole again",
    Trigger.SHORT_GRANT: "fewer nodes than asked for, for too long",
    Trigger.CAPACITY_BACK: "a pool that had failed may be asked again",
    Trigger.DRIFT: "training is faster or slower than planned",
    Trigger.PRICE_CHANGE: "prices have changed",
    Trigger.DEADLINE_AT_RISK: "at this speed the deadline will be missed",
    Trigger.CEILING_REACHED: "at this rent the budget will not do",
    Trigger.BUDGET_SPENT: "the budget is spent, but for what giving the fleet back takes",
}


def trigger_events(triggers: Sequence[Trigger], view: JobView, now: datetime) -> list[NewEvent]:
    """Return the events of what was seen, but for what is in the log already."""
    return [
        NewEvent(
            time=now,
            kind=trigger,
            text=_TEXTS[trigger],
            facts={"node_count": str(len(view.nodes)), "asked": str(sum(view.asked.values()))},
        )
        for trigger in triggers
        if trigger not in _SILENT
    ]


def notices(seen: Seen, before: SteeringMemory, now: datetime) -> Iterator[NewEvent]:
    """Yield the notices and hints that came since the last look."""
    hosts = {host.node_id: host for host in seen.hosts}
    for node in seen.view.nodes:
        _, state = before.nodes.get(node.node_id, (node.pool, None))
        if node.state is state or node.state not in _NOTICE_KINDS:
            continue
        agents = agents_of({node.node_id: hosts[node.node_id]})
        facts = {"node_id": node.node_id, "pool": str(node.pool), "agent_ids": ", ".join(agents)}
        until_s = seen.leaving_until.get(node.node_id)
        if until_s is not None:
            facts["deadline"] = datetime.fromtimestamp(until_s, UTC).isoformat()
        yield NewEvent(
            time=now,
            kind=_NOTICE_KINDS[node.state],
            text=_NOTICE_TEXTS[node.state].format(node=node.node_id, pool=node.pool),
            facts=facts,
        )


def unseen_event(view: JobView, now: datetime) -> NewEvent:
    """Return the event of a job that trains on hosts that nobody has seen."""
    return NewEvent(
        time=now,
        kind="fleet-unseen",
        text="training makes progress, but no agent of this job has told where it runs: nothing "
        "is decided about its fleet; run agents with --job-id on its hosts, where they can read "
        "the cloud's metadata",
        facts={"asked": str(sum(view.asked.values()))},
    )


def price_events(pools: Set[Pool], now: datetime) -> Iterator[NewEvent]:
    """Yield the pools of nodes whose price nobody has told so far."""
    for pool in sorted(pools):
        yield NewEvent(
            time=now,
            kind="price-unknown",
            text=f"nobody has told what {pool} costs: spending stands still until that is known",
            facts={"pool": str(pool)},
        )
