"""Hosts that have become less, to and from the log of a job."""

from datetime import datetime

from spotwright.domain.job_run import NewEvent
from spotwright.domain.shrunk import Part, Resource, ShrunkHost

SHRUNK, WHOLE = "host-shrunk", "host-whole"
_SLOWER = {Resource.CPU: "its compute", Resource.NETWORK: "its exchange"}


def shrunk_event(host: ShrunkHost, now: datetime) -> NewEvent:
    """Return that a host has become less."""
    agent_id, resource = host.part
    return NewEvent(
        time=now,
        kind=SHRUNK,
        text=f"{agent_id} has {host.text} left; {_SLOWER[resource]} takes {host.slowed:.2f}x as "
        "long as before",
        facts={
            "agent_id": agent_id,
            "resource": resource,
            "before": f"{host.before:.6g}",
            "now": f"{host.now:.6g}",
            "slowed": f"{host.slowed:.6g}",
        },
    )


def whole_event(host: ShrunkHost, now: datetime) -> NewEvent:
    """Return that a host is as it was before."""
    agent_id, resource = host.part
    return NewEvent(
        time=now,
        kind=WHOLE,
        text=f"{agent_id} has all of its {resource} again",
        facts={"agent_id": agent_id, "resource": resource},
    )


def part_of(event: NewEvent) -> Part:
    """Return what an event of either kind is about."""
    return Part(event.facts["agent_id"], Resource(event.facts["resource"]))


def host_of(event: NewEvent) -> ShrunkHost:
    """Return the host that has become less."""
    figures = {name: float(event.facts[name]) for name in ("before", "now", "slowed")}
    return ShrunkHost(part=part_of(event), **figures)
