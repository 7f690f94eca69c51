"""What every store must do with measurements of the network."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from spotwright.domain.telemetry import AgentFacts, NetworkProbe
from spotwright.usecases.store_ports import Store
from tests.contracts.store_values import new_agent, new_batch, new_job, unused

_NOW = datetime(2026, 11, 18, 9, 0, 0, 250_000, tzinfo=UTC)
_PROBE = NetworkProbe(
    command_id="command-1",
    peer="10.0.0.2:7444",
    time=_NOW,
    sent_mbps=9_800.5,
    received_mbps=9_750.0,
    round_trip_s=0.000_21,
)
_FAILED = NetworkProbe(
    command_id="command-2", peer="10.0.0.3", time=_NOW, problem="connection refused"
)


class ProbeContract:
    """Tests that a subclass inherits."""

    def test_an_agent_that_never_probed_has_no_probe(self, store: Store) -> None:
        facts = _connected(store)

        store.commit_batches([new_batch(facts, 1)])

        assert store.agent(facts.agent_id).latest_probe is None

    def test_the_last_result_and_the_last_failure_are_kept_and_outlive_a_boot(
        self, store: Store
    ) -> None:
        facts = _connected(store)
        newer = replace(_PROBE, sent_mbps=None, limited_by="cpu", time=_NOW + timedelta(hours=1))

        store.commit_batches([new_batch(facts, 1, probes=(_PROBE,))])
        assert store.agent(facts.agent_id).failed_probe is None
        store.commit_batches([new_batch(facts, 2, probes=(_FAILED,)), new_batch(facts, 3)])
        assert store.agent(facts.agent_id).latest_probe == _PROBE
        assert store.agent(facts.agent_id).failed_probe == _FAILED

        refused = replace(_FAILED, command_id="command-3")
        store.commit_batches([new_batch(facts, 4, probes=(_FAILED, _PROBE, refused, newer))])
        store.open_session(replace(facts, boot_id="boot-2"), session_id="s", replica="r")
        assert store.agent(facts.agent_id).latest_probe == newer
        (listed,) = (
            agent
            for agent in store.agents(job_id=facts.job_id, limit=1000)
            if agent.facts.agent_id == facts.agent_id
        )
        assert (listed.latest_probe, listed.failed_probe) == (newer, refused)

    def test_a_probe_is_an_event_of_the_job_once(self, store: Store) -> None:
        job = store.add_job(new_job(), [])
        facts = _connected(store, job_id=job.job_id)
        batch = new_batch(facts, 1, probes=(_PROBE, _FAILED))

        store.commit_batches([batch])
        store.commit_batches([batch])

        measured, failed = store.events(job.job_id, limit=10)
        assert (measured.kind, measured.time) == ("network-probed", _NOW)
        assert measured.facts == {
            "agent_id": facts.agent_id,
            "peer": "10.0.0.2:7444",
            "command_id": "command-1",
            "sent_mbps": "9800.5",
            "received_mbps": "9750",
            "round_trip_s": "0.00021",
        }
        assert "9.8 Gbit/s out, 9.75 Gbit/s back, 0.21 ms there and back" in measured.text
        assert (failed.kind, failed.facts["problem"]) == (
            "network-probe-failed",
            "connection refused",
        )

    def test_a_probe_for_a_job_that_is_not_known_is_kept_all_the_same(self, store: Store) -> None:
        facts = _connected(store, job_id=unused("job"))

        assert store.commit_batches([new_batch(facts, 1, probes=(_PROBE,))])

        assert store.agent(facts.agent_id).latest_probe == _PROBE


def _connected(store: Store, *, job_id: str = "") -> AgentFacts:
    facts = new_agent(job_id=job_id)
    store.open_session(facts, session_id="session-1", replica="replica-1")
    return facts
