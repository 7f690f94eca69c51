"""Telemetry in memory, with the promises of TelemetryStore; it can be told to fail."""

import threading
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from spotwright.domain.errors import NotFoundError, StoreUnavailableError
from spotwright.domain.telemetry import (
    AgentFacts,
    AgentRecord,
    BatchKey,
    QueuedCommand,
    ReceivedBatch,
    RollupPart,
    StoredBatch,
    merge_parts,
)
from spotwright.usecases.store_ports import SessionStart


class MemoryTelemetryStore:
    """Keeps everything until the test ends."""

    def __init__(self) -> None:
        self.fails = False  # every call raises StoreUnavailableError
        self.gate = threading.Event()  # commits wait while it is not set
        self.gate.set()
        self.rows: list[ReceivedBatch] = []
        self.look_count = self.commit_count = 0  # begun
        self._agents: dict[str, AgentRecord] = {}
        self._marks: dict[tuple[str, str], int] = {}
        self._commands: list[QueuedCommand] = []
        self._command_ids: set[str] = set()  # ever queued
        self._lock = threading.Lock()

    def open_session(self, facts: AgentFacts, *, session_id: str, replica: str) -> SessionStart:
        with self._answering():
            last = self._marks.get((facts.agent_id, facts.boot_id), 0)
            before = self._agents.get(facts.agent_id, _new_agent(facts))
            self._agents[facts.agent_id] = replace(
                before, facts=facts, session_id=session_id, replica=replica, last_sequence=last
            )
            return SessionStart(last_sequence=last)

    def close_session(self, agent_id: str, session_id: str) -> None:
        with self._answering():
            agent = self._agents[agent_id]
            if agent.session_id == session_id:
                self._agents[agent_id] = replace(agent, session_id="")

    def session_ids(self, agent_ids: Collection[str]) -> dict[str, str]:
        with self._answering():
            found = {name: self._agents[name].session_id for name in agent_ids}
            return {name: session_id for name, session_id in found.items() if session_id}

    def commit_batches(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        self.commit_count += 1
        self.gate.wait(10)
        with self._answering():
            return {batch.key for batch in batches if self._add(batch)}

    def agents(
        self,
        *,
        job_id: str = "",
        after_id: str = "",
        seen_since: datetime | None = None,
        limit: int,
    ) -> Sequence[AgentRecord]:
        with self._answering():
            self.look_count += 1
            found = [
                self._agents[name]
                for name in sorted(self._agents)
                if name > after_id and job_id in ("", self._agents[name].facts.job_id)
            ]
            if seen_since is not None:
                found = [
                    agent for agent in found if agent.last_seen and agent.last_seen >= seen_since
                ]
            return found[:limit]

    def agent(self, agent_id: str) -> AgentRecord:
        with self._answering():
            if agent_id not in self._agents:
                raise NotFoundError("agent", agent_id)
            return self._agents[agent_id]

    def batches(
        self, agent_id: str, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        with self._answering():
            found = [
                (number, _stored(batch))
                for number, batch in enumerate(self.rows, start=1)
                if number > after
                and batch.key.agent_id == agent_id
                and batch.last_unix_ms >= start_unix_ms
                and batch.first_unix_ms < end_unix_ms
            ]
            return found[:limit]

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        with self._answering():
            mine = (batch for batch in self.rows if batch.key.agent_id == agent_id)
            parts = merge_parts(
                replace(part, start_unix_s=part.start_unix_s // resolution_s * resolution_s)
                for batch in mine
                for part in batch.parts
            )
            return [p for p in parts if start_unix_s <= p.start_unix_s < end_unix_s][:limit]

    def queue_command(self, command: QueuedCommand) -> None:
        self.agent(command.agent_id)
        with self._answering():
            if command.command_id not in self._command_ids:
                self._command_ids.add(command.command_id)
                self._commands.append(command)

    def take_commands(self, agent_ids: Collection[str]) -> Sequence[QueuedCommand]:
        with self._answering():
            taken = [command for command in self._commands if command.agent_id in agent_ids]
            self._commands = [c for c in self._commands if c not in taken]
            return taken

    @contextmanager
    def held(self) -> Iterator[None]:
        """Answer nobody until the block ends."""
        with self._lock:
            yield

    @contextmanager
    def _answering(self) -> Iterator[None]:
        if self.fails:
            raise StoreUnavailableError("the store is away")
        with self._lock:
            yield

    def _add(self, batch: ReceivedBatch) -> bool:
        boot = batch.key[:2]
        if batch.key.sequence <= self._marks.get(boot, 0):
            return False
        self._marks[boot] = batch.key.sequence
        self.rows.append(batch)
        agent = self._agents[batch.key.agent_id]
        self._agents[batch.key.agent_id] = replace(
            agent,
            last_seen=datetime.fromtimestamp(batch.receive_unix_ms / 1000, tz=UTC),
            clock_skew_s=batch.clock_skew_s,
            last_sequence=batch.key.sequence,
            dropped_sample_count=agent.dropped_sample_count + batch.dropped_sample_count,
            latest_sample=batch.latest_sample or agent.latest_sample,
            latest_step=batch.latest_step or agent.latest_step,
            notice=batch.notices[-1] if batch.notices else agent.notice,
            latest_probe=next((p for p in batch.probes[::-1] if p.has_result), agent.latest_probe),
            failed_probe=next(
                (p for p in batch.probes[::-1] if not p.has_result), agent.failed_probe
            ),
            faults=agent.faults if batch.faults is None else batch.faults,
        )
        return True


def _stored(batch: ReceivedBatch) -> StoredBatch:
    return StoredBatch(
        key=batch.key,
        receive_unix_ms=batch.receive_unix_ms,
        clock_skew_s=batch.clock_skew_s,
        document=batch.document,
    )


def _new_agent(facts: AgentFacts) -> AgentRecord:
    return AgentRecord(
        facts=facts,
        session_id="",
        replica="",
        last_seen=None,
        clock_skew_s=0.0,
        last_sequence=0,
        dropped_sample_count=0,
        latest_sample=None,
        latest_step=None,
        notice=None,
        faults=None,
    )
