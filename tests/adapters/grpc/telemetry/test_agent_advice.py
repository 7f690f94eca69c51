"""Advice about checkpoints becomes commands that agents fetch."""

from spotwright.adapters.grpc.telemetry.advice import AgentAdvice
from spotwright.domain.telemetry import AgentFacts, QueuedCommand
from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.commands import Checkpoint
from spotwright_agent.report.messages import command_from_proto
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore


class _Outgoing:
    """Advice on a store that knows some agents."""

    def __init__(self, *agent_ids: str) -> None:
        self.store = MemoryTelemetryStore()
        self.told = 0
        for agent_id in agent_ids:
            facts = AgentFacts(agent_id=agent_id, boot_id="boot")
            self.store.open_session(facts, session_id=f"of-{agent_id}", replica="r")
        self.advice = AgentAdvice(self.store, queued=self._queued)

    def _queued(self) -> None:
        self.told += 1

    def taken(self, *agent_ids: str) -> list[tuple[str, Checkpoint]]:
        return [(each.agent_id, _read(each)) for each in self.store.take_commands(agent_ids)]


def _read(queued: QueuedCommand) -> Checkpoint:
    message = v1.Command.FromString(queued.document)
    assert message.command_id == queued.command_id
    command = command_from_proto(message)
    assert isinstance(command, Checkpoint)
    return command


def test_each_agent_that_is_named_gets_the_advice_and_no_other() -> None:
    out = _Outgoing("a", "b", "c")

    out.advice.checkpoint(["a", "c"], interval_s=None, seconds_left=90.5)

    save = Checkpoint(seconds_left=90.5, interval_s=None)
    assert out.taken("a", "b", "c") == [("a", save), ("c", save)]
    assert out.taken("a", "b", "c") == []
    assert out.told == 1


def test_an_interval_comes_without_seconds_left_and_zero_is_not_nothing() -> None:
    out = _Outgoing("a")

    out.advice.checkpoint(["a"], interval_s=600.0, seconds_left=None)
    out.advice.checkpoint(["a"], interval_s=None, seconds_left=0.0)
    out.advice.checkpoint(["a"], interval_s=None, seconds_left=None)

    assert [command for _, command in out.taken("a")] == [
        Checkpoint(seconds_left=None, interval_s=600.0),
        Checkpoint(seconds_left=0.0, interval_s=None),
        Checkpoint(seconds_left=None, interval_s=None),
    ]


def test_commands_have_names_of_their_own() -> None:
    out = _Outgoing("a", "b")

    for _ in range(2):
        out.advice.checkpoint(["a", "b"], interval_s=600.0, seconds_left=None)

    assert len({each.command_id for each in out.store.take_commands(["a", "b"])}) == 4


def test_an_agent_that_is_gone_keeps_nobody_from_being_told() -> None:
    out = _Outgoing("b")

    out.advice.checkpoint(["gone", "b"], interval_s=None, seconds_left=30.0)

    assert [agent_id for agent_id, _ in out.taken("b")] == ["b"]
    assert out.told == 1


def test_nobody_is_woken_when_there_is_nobody_to_tell() -> None:
    out = _Outgoing()

    out.advice.checkpoint([], interval_s=600.0, seconds_left=None)

    assert out.told == 0
