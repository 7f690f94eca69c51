"""What a cloud said about taking hosts away: what holds now, and how it is logged."""

import json
from datetime import datetime

from sqlalchemy import Connection, select, update

from spotwright.adapters.store.tables import agents
from spotwright.domain.job_run import NewEvent
from spotwright.domain.telemetry import AgentNotice, ReceivedBatch

_EVENT_KINDS = {
    "hint": "interruption-hint",
    "interruption": "interruption-notice",
    "withdrawn": "notice-withdrawn",
}
_SENTENCES = {
    "hint": "{source} says that {agent} may be taken away",
    "interruption": "{source} will take {agent} away",
    "withdrawn": "{source} takes back what it said about {agent}",
}


def notice_that_holds(document: str | None, *, now: datetime) -> AgentNotice | None:
    """Read a notice back, unless its deadline has passed."""
    if document is None:
        return None
    kind, time, deadline, source, detail = json.loads(document)
    notice = AgentNotice(
        kind=kind,
        time=datetime.fromisoformat(time),
        deadline=None if deadline is None else datetime.fromisoformat(deadline),
        source=source,
        detail=detail,
    )
    return notice if notice.deadline is None or now < notice.deadline else None


def replace_notice(connection: Connection, batch: ReceivedBatch) -> None:
    """Keep what holds after a batch."""
    mine = agents.c.agent_id == batch.key.agent_id
    document = connection.execute(select(agents.c.notice).where(mine).with_for_update()).scalar()
    for notice in batch.notices:
        standing = notice_that_holds(document, now=notice.time)
        if notice.kind == "withdrawn":
            document = None
        elif notice.kind == "interruption" or standing is None or standing.kind == "hint":
            document = _document(notice)  # a hint does not soften what is certain
    connection.execute(update(agents).where(mine).values(notice=document))


def _document(notice: AgentNotice) -> str:
    deadline = None if notice.deadline is None else notice.deadline.isoformat()
    return json.dumps(
        [notice.kind, notice.time.isoformat(), deadline, notice.source, notice.detail]
    )


def notice_event(agent_id: str, notice: AgentNotice) -> NewEvent:
    """Return a notice as it stands in the log of a job."""
    facts = {"agent_id": agent_id, "source": notice.source}
    text = _SENTENCES[notice.kind].format(source=notice.source, agent=agent_id)
    if notice.deadline is not None:
        facts["deadline"] = notice.deadline.isoformat()
        text += f", by {notice.deadline:%Y-%m-%d %H:%M:%S}"
    return NewEvent(
        time=notice.time,
        kind=_EVENT_KINDS[notice.kind],
        text=f"{text}: {notice.detail}" if notice.detail else text,
        facts=facts,
    )
