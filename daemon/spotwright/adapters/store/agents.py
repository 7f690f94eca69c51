"""Agents and their sessions in the database."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, select, update

from spotwright.adapters.store.boots import lock_marks
from spotwright.adapters.store.notices import notice_that_holds
from spotwright.adapters.store.probes import kept_probe
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import agent_boots, agents
from spotwright.domain.errors import NotFoundError
from spotwright.domain.telemetry import AgentFacts, AgentRecord
from spotwright.usecases.store_ports import SessionStart

_CHUNK = 500  # names in one question
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CARRIED = ("last_seen_unix_ms", "clock_skew_s", "latest_sample", "latest_step", "faults")


class SqlAgents(StorePart):
    """Who sends telemetry."""

    def open_session(self, facts: AgentFacts, *, session_id: str, replica: str) -> SessionStart:
        """Make this the agent's one session, whatever session it had before."""
        name = (facts.agent_id, facts.boot_id)
        row = {
            "boot_id": facts.boot_id,
            "job_id": facts.job_id,
            "facts": json.dumps(asdict(facts), sort_keys=True),
            "session_id": session_id,
            "replica": replica,
            "open_unix_s": self._database.now_unix_s,
        }
        keep = self._database.insert(agents).values(agent_id=facts.agent_id, **row)
        with self._database.writing() as connection:
            mark = lock_marks(self._database, connection, [name])[name]
            if mark.last_sequence == 0:
                _carry_figures(connection, facts.agent_id, to_boot_number=mark.boot_number)
            connection.execute(keep.on_conflict_do_update(index_elements=["agent_id"], set_=row))
        return SessionStart(mark.last_sequence)

    def close_session(self, agent_id: str, session_id: str) -> None:
        """Mark the agent as not connected, if this is still its session."""
        mine = and_(agents.c.agent_id == agent_id, agents.c.session_id == session_id)
        with self._database.writing() as connection:
            connection.execute(update(agents).where(mine).values(session_id="", replica=""))

    def session_ids(self, agent_ids: Collection[str]) -> dict[str, str]:
        """Return the open session of each agent that has one."""
        names, found = list(agent_ids), dict[str, str]()
        query = select(agents.c.agent_id, agents.c.session_id).where(agents.c.session_id != "")
        with self._database.reading() as connection:
            for first in range(0, len(names), _CHUNK):
                these = agents.c.agent_id.in_(names[first : first + _CHUNK])
                found |= {
                    row.agent_id: row.session_id for row in connection.execute(query.where(these))
                }
        return found

    def agents(
        self,
        *,
        job_id: str = "",
        after_id: str = "",
        seen_since: datetime | None = None,
        limit: int,
    ) -> Sequence[AgentRecord]:
        """Return agents by name, those after `after_id`; no job_id: of all jobs and of none.

        With `seen_since` only those that have sent something since.
        """
        query = _records().where(agents.c.agent_id > after_id)
        if job_id:
            query = query.where(agents.c.job_id == job_id)
        if seen_since is not None:
            since_ms = (seen_since - _EPOCH) / timedelta(milliseconds=1)
            query = query.where(agent_boots.c.last_seen_unix_ms >= math.ceil(since_ms))
        query = query.order_by(agents.c.agent_id).limit(limit)
        now = datetime.now(UTC)
        with self._database.reading() as connection:
            return [_record(row, now=now) for row in connection.execute(query)]

    def agent(self, agent_id: str) -> AgentRecord:
        """Return an agent, or raise NotFoundError."""
        query = _records().where(agents.c.agent_id == agent_id)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFoundError("agent", agent_id)
        return _record(row, now=datetime.now(UTC))


def _carry_figures(connection: Connection, agent_id: str, *, to_boot_number: int) -> None:
    """Let a new boot start from the latest figures of the one before."""
    columns = [agent_boots.c[name] for name in _CARRIED]
    latest = select(*columns).select_from(_with_boots()).where(agents.c.agent_id == agent_id)
    row = connection.execute(latest).one_or_none()
    if row is not None:
        mine = agent_boots.c.boot_number == to_boot_number
        connection.execute(update(agent_boots).where(mine).values(**row._asdict()))


def _with_boots() -> Any:
    same = and_(
        agent_boots.c.agent_id == agents.c.agent_id, agent_boots.c.boot_id == agents.c.boot_id
    )
    return agents.join(agent_boots, same)


def _records() -> Select[Any]:
    return select(
        agents.c.facts,
        agents.c.session_id,
        agents.c.replica,
        agents.c.notice,
        agents.c.latest_probe,
        agents.c.failed_probe,
        agent_boots.c.last_sequence,
        agent_boots.c.dropped_sample_count,
        *(agent_boots.c[name] for name in _CARRIED),
    ).select_from(_with_boots())


def _record(row: Row[Any], *, now: datetime) -> AgentRecord:
    facts, seen_ms = json.loads(row.facts), row.last_seen_unix_ms
    return AgentRecord(
        facts=AgentFacts(**facts | {"gpu_names": tuple(facts["gpu_names"])}),
        session_id=row.session_id,
        replica=row.replica,
        last_seen=None if seen_ms is None else _EPOCH + timedelta(milliseconds=seen_ms),
        clock_skew_s=row.clock_skew_s,
        last_sequence=row.last_sequence,
        dropped_sample_count=row.dropped_sample_count,
        latest_sample=row.latest_sample,
        latest_step=row.latest_step,
        notice=notice_that_holds(row.notice, now=now),
        faults=row.faults,
        latest_probe=kept_probe(row.latest_probe),
        failed_probe=kept_probe(row.failed_probe),
    )
