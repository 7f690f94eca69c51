"""What every store must do with agents, their sessions, notices and commands."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spotwright.domain.errors import NotFoundError
from spotwright.domain.telemetry import AgentFacts, AgentNotice, QueuedCommand
from spotwright.usecases.store_ports import Store
from tests.contracts.store_values import (
    START_UNIX_S,
    in_threads,
    new_agent,
    new_batch,
    new_job,
    unused,
)


class SessionContract:
    """Tests that a subclass inherits."""

    def test_an_agent_is_known_from_its_first_session_on(self, store: Store) -> None:
        facts = _connected(store)

        agent = store.agent(facts.agent_id)

        assert (agent.facts, agent.session_id, agent.replica) == (facts, "session-1", "replica-1")
        assert (agent.last_seen, agent.last_sequence, agent.latest_sample) == (None, 0, None)
        with pytest.raises(NotFoundError, match="no agent 'agent-0'"):
            store.agent("agent-0")

    def test_the_newest_session_is_the_only_one(self, store: Store, other: Store) -> None:
        facts = _connected(store)

        other.open_session(facts, session_id="session-2", replica="replica-2")
        store.close_session(facts.agent_id, "session-1")

        assert store.session_ids([facts.agent_id, "agent-0"]) == {facts.agent_id: "session-2"}

    def test_a_closed_session_leaves_the_agent_known_and_not_connected(self, store: Store) -> None:
        facts = _connected(store)

        store.close_session(facts.agent_id, "session-1")

        assert store.session_ids([facts.agent_id]) == {}
        assert store.agent(facts.agent_id).session_id == ""

    def test_sessions_of_more_agents_than_fit_one_question_are_found(self, store: Store) -> None:
        facts = _connected(store)
        names = [f"agent-{i}" for i in range(1200)]

        assert store.session_ids([*names, facts.agent_id]) == {facts.agent_id: "session-1"}

    def test_a_session_starts_after_what_is_stored_of_its_boot(self, store: Store) -> None:
        facts = _connected(store)
        store.commit_batches([new_batch(facts, sequence) for sequence in (1, 2, 3)])
        rebooted = replace(facts, boot_id="boot-2")

        again = store.open_session(facts, session_id="s", replica="r")
        anew = store.open_session(rebooted, session_id="s", replica="r")

        assert (again.last_sequence, anew.last_sequence) == (3, 0)

    def test_the_latest_figures_of_an_agent_outlive_its_boot_and_counts_do_not(
        self, store: Store
    ) -> None:
        facts = _connected(store)
        store.commit_batches([replace(new_batch(facts, 7, at_s=5.0), dropped_sample_count=4)])

        store.open_session(replace(facts, boot_id="boot-2"), session_id="s", replica="r")

        agent = store.agent(facts.agent_id)
        assert (agent.latest_sample, agent.clock_skew_s) == (b"sample 7", -0.25)
        assert agent.last_seen == datetime.fromtimestamp(START_UNIX_S + 5, UTC)
        assert (agent.last_sequence, agent.dropped_sample_count) == (0, 0)

    def test_agents_come_by_name_in_pages_and_by_job(self, store: Store) -> None:
        job_id = unused("job")
        names = [_connected(store, job_id=job_id).agent_id for _ in range(5)]
        _connected(store)

        first = store.agents(job_id=job_id, limit=3)
        rest = store.agents(job_id=job_id, after_id=first[-1].facts.agent_id, limit=3)

        assert [agent.facts.agent_id for agent in [*first, *rest]] == sorted(names)
        assert len(store.agents(limit=1000)) >= 6

    def test_agents_that_were_not_seen_since_are_left_out_before_the_limit(
        self, store: Store
    ) -> None:
        job_id = unused("job")
        agents = sorted(_connected(store, job_id=job_id).agent_id for _ in range(5))
        records = {agent.facts.agent_id: agent for agent in store.agents(job_id=job_id, limit=9)}
        for agent_id, at_s in zip(agents[1:], (10.0, 19.999, 20.0, 30.0), strict=True):
            store.commit_batches([new_batch(records[agent_id].facts, 1, at_s=at_s)])
        since = datetime.fromtimestamp(START_UNIX_S + 20, UTC)

        def seen(**question: Any) -> list[str]:
            found = store.agents(job_id=job_id, seen_since=since, **question)
            return [agent.facts.agent_id for agent in found]

        assert seen(limit=2) == agents[3:]
        assert seen(limit=1) == agents[3:4]
        assert seen(limit=2, after_id=agents[3]) == agents[4:]

    def test_a_notice_holds_until_it_is_withdrawn_and_a_hint_does_not_soften_it(
        self, store: Store
    ) -> None:
        facts = _connected(store)
        hint, certain = _notice("hint"), _notice("interruption", minutes=10)

        for sequence, notice, holds in (
            (1, hint, hint),
            (2, certain, certain),
            (3, hint, certain),
            (4, _notice("withdrawn"), None),
            (5, hint, hint),
        ):
            store.commit_batches([new_batch(facts, sequence, notices=(notice,))])
            assert store.agent(facts.agent_id).notice == holds

    def test_a_notice_no_longer_holds_after_its_deadline(self, store: Store) -> None:
        facts = _connected(store)

        store.commit_batches([new_batch(facts, 1, notices=(_notice("interruption", minutes=-1),))])

        assert store.agent(facts.agent_id).notice is None

    def test_notices_are_events_of_the_job_once(self, store: Store) -> None:
        job = store.add_job(new_job(), [])
        facts = _connected(store, job_id=job.job_id)
        notices = (_notice("hint"), _notice("interruption", minutes=2), _notice("withdrawn"))
        batch = new_batch(facts, 1, notices=notices)

        store.commit_batches([batch])
        store.commit_batches([batch])

        events = store.events(job.job_id, limit=10)
        kinds = ["interruption-hint", "interruption-notice", "notice-withdrawn"]
        assert [(event.sequence, event.kind) for event in events] == list(enumerate(kinds, 1))
        assert events[1].facts == {
            "agent_id": facts.agent_id,
            "source": "aws",
            "deadline": (_now() + timedelta(minutes=2)).isoformat(),
        }

    def test_a_notice_of_an_agent_whose_job_is_not_known_is_kept_all_the_same(
        self, store: Store
    ) -> None:
        facts = _connected(store, job_id=unused("job"))

        assert store.commit_batches([new_batch(facts, 1, notices=(_notice("hint"),))])

        assert store.agent(facts.agent_id).notice == _notice("hint")

    def test_commands_are_taken_once_oldest_first(self, store: Store) -> None:
        mine, others = _connected(store), _connected(store)
        queued = [_command(mine), _command(others), _command(mine)]
        for command in queued:
            store.queue_command(command)

        assert store.take_commands([mine.agent_id]) == [queued[0], queued[2]]
        assert store.take_commands([mine.agent_id]) == []
        assert store.take_commands([mine.agent_id, others.agent_id]) == [queued[1]]

    def test_a_command_queued_again_is_not_taken_again(self, store: Store) -> None:
        facts = _connected(store)
        command = _command(facts)
        store.queue_command(command)
        store.take_commands([facts.agent_id])

        store.queue_command(command)

        assert store.take_commands([facts.agent_id]) == []

    def test_a_command_for_nobody_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no agent 'agent-0'"):
            store.queue_command(_command(new_agent(agent_id="agent-0")))

    def test_commands_taken_by_two_replicas_at_once_are_taken_once(
        self, store: Store, other: Store
    ) -> None:
        facts = _connected(store)
        queued = [_command(facts) for _ in range(40)]
        for command in queued:
            store.queue_command(command)

        taken = in_threads(6, lambda i: (store, other)[i % 2].take_commands([facts.agent_id]))

        names = [command.command_id for commands in taken for command in commands]
        assert sorted(names) == sorted(command.command_id for command in queued)


def _connected(store: Store, *, job_id: str = "") -> AgentFacts:
    facts = new_agent(job_id=job_id)
    store.open_session(facts, session_id="session-1", replica="replica-1")
    return facts


def _notice(kind: str, *, minutes: float | None = None) -> AgentNotice:
    now = _now()
    deadline = None if minutes is None else now + timedelta(minutes=minutes)
    return AgentNotice(kind=kind, time=now, deadline=deadline, source="aws", detail="terminate")


def _now() -> datetime:
    """Return the time by which notices hold: asked each time, as a run of tests may be long."""
    return datetime.now(UTC).replace(microsecond=0)


def _command(facts: AgentFacts) -> QueuedCommand:
    return QueuedCommand(
        command_id=unused("command"), agent_id=facts.agent_id, document=b"\x00\x01"
    )
