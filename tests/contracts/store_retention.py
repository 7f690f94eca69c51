"""What every store must forget: requests, agents and boots of long ago."""

import time
from collections.abc import Sequence
from contextlib import suppress

from spotwright.domain.errors import NotFoundError
from spotwright.domain.telemetry import AgentFacts, QueuedCommand, ReceivedBatch
from spotwright.usecases.store_ports import Retention, Store
from tests.contracts.store_values import START_UNIX_S, new_agent, new_batch, new_plan, unused

_NOW = time.time()
_SENT_UNIX_S = _NOW + 10_000.0  # sessions open now, by the store's own clock; batches come later
_LATER_UNIX_S = _SENT_UNIX_S + 1_000.0  # after all that these tests store


class RetentionContract:
    """Tests that a subclass inherits."""

    def test_a_request_is_known_until_it_is_old(self, store: Store) -> None:
        request_id, plan = unused("request"), new_plan()
        store.add_plan(plan, request_id=request_id)

        _prune(store, requests_unix_s=_NOW - 60.0)
        assert store.plan_of_request(request_id) == plan
        _prune(store, requests_unix_s=_SENT_UNIX_S)

        assert store.plan_of_request(request_id) is None
        assert store.plan(plan.plan_id) == plan

    def test_an_agent_is_forgotten_when_it_was_not_seen_for_long(self, store: Store) -> None:
        silent, sending = new_agent(), new_agent()
        _connect(store, silent, sending)
        store.commit_batches([_batch(sending, 1)])
        command = QueuedCommand(
            command_id=unused("command"), agent_id=sending.agent_id, document=b"stop"
        )
        store.queue_command(command)
        _disconnect(store, silent, sending)

        _prune(store, agents_unix_s=_NOW - 60.0)
        assert _known(store, [silent, sending]) == [silent, sending]
        _prune(store, agents_unix_s=_SENT_UNIX_S - 1.0)  # the batch came later than that
        assert _known(store, [silent, sending]) == [sending]
        _prune(store, agents_unix_s=_LATER_UNIX_S)

        assert _known(store, [silent, sending]) == []
        assert store.take_commands([sending.agent_id]) == []

    def test_an_agent_that_is_connected_is_never_forgotten(self, store: Store) -> None:
        facts = new_agent()
        _connect(store, facts)
        store.commit_batches([_batch(facts, 1)])

        _prune(store, agents_unix_s=_LATER_UNIX_S)

        assert store.agent(facts.agent_id).last_sequence == 1

    def test_only_marks_of_boots_that_are_long_over_are_forgotten(self, store: Store) -> None:
        agent_id = unused("agent")
        boots = [new_agent(agent_id=agent_id, boot_id=f"boot-{i}") for i in range(3)]
        for i, boot in enumerate(boots):
            _connect(store, boot)
            store.commit_batches([_batch(boot, 5, after_s=100.0 * i)])
        _prune(store, batches_unix_s=_LATER_UNIX_S, agents_unix_s=_SENT_UNIX_S + 50.0)

        marks = [
            store.open_session(boot, session_id="again", replica="r").last_sequence
            for boot in boots
        ]

        assert marks == [0, 5, 5]

    def test_a_boot_stays_as_long_as_there_are_batches_of_it(self, store: Store) -> None:
        facts = new_agent()
        _connect(store, facts)
        store.commit_batches([_batch(facts, 1)])
        _disconnect(store, facts)
        _prune(store, agents_unix_s=_LATER_UNIX_S)

        found = store.batches(facts.agent_id, start_unix_ms=0, end_unix_ms=2**52, limit=10)

        assert [batch.key.sequence for _, batch in found] == [1]

    def test_an_agent_that_was_forgotten_starts_anew(self, store: Store) -> None:
        facts = new_agent()
        _connect(store, facts)
        store.commit_batches([_batch(facts, 3)])
        _disconnect(store, facts)
        _prune(store, batches_unix_s=_LATER_UNIX_S, agents_unix_s=_LATER_UNIX_S)

        _connect(store, facts)

        assert len(store.commit_batches([_batch(facts, 1)])) == 1
        assert store.agent(facts.agent_id).last_sequence == 1


def _batch(facts: AgentFacts, sequence: int, *, after_s: float = 0.0) -> ReceivedBatch:
    return new_batch(facts, sequence, at_s=_SENT_UNIX_S + after_s - START_UNIX_S)


def _connect(store: Store, *agents: AgentFacts) -> None:
    for facts in agents:
        store.open_session(facts, session_id="session-1", replica="replica-1")


def _disconnect(store: Store, *agents: AgentFacts) -> None:
    for facts in agents:
        store.close_session(facts.agent_id, "session-1")


def _known(store: Store, agents: Sequence[AgentFacts]) -> list[AgentFacts]:
    found = []
    for facts in agents:
        with suppress(NotFoundError):
            found.append(store.agent(facts.agent_id).facts)
    return found


def _prune(
    store: Store,
    *,
    batches_unix_s: float = 0.0,
    requests_unix_s: float = 0.0,
    agents_unix_s: float = 0.0,
) -> None:
    retention = Retention(batches_unix_s, {}, requests_unix_s, agents_unix_s)
    while store.prune(retention, limit=100):
        pass
