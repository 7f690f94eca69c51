import pytest

from spotwright.adapters.store.open_rollups import AgentInterval, OpenRollups
from spotwright.adapters.store.rollup_document import packed, unpacked
from spotwright.domain.telemetry import FIGURES, RollupPart, Statistic
from tests.contracts.store_values import START_UNIX_S, new_agent, new_batch

_AGENT = new_agent(agent_id="agent-1")


def test_a_draft_changes_nothing_until_it_is_adopted() -> None:
    rollups, interval = OpenRollups(), AgentInterval("agent-1", START_UNIX_S)
    first = rollups.draft([new_batch(_AGENT, 1)])
    rollups.adopt(first)

    abandoned = rollups.draft([new_batch(_AGENT, 2)])
    again = rollups.draft([new_batch(_AGENT, 2)])

    assert abandoned[interval].counts == again[interval].counts == (2, 0, 0)
    assert first[interval].counts == (1, 0, 0)
    assert first[interval].number == again[interval].number


def test_after_a_failure_other_parts_are_written() -> None:
    rollups, interval = OpenRollups(), AgentInterval("agent-1", START_UNIX_S)
    first = rollups.draft([new_batch(_AGENT, 1)])
    rollups.adopt(first)

    rollups.forget()
    second = rollups.draft([new_batch(_AGENT, 2)])

    assert first[interval].number != second[interval].number
    assert second[interval].counts == (1, 0, 0)


def test_an_agent_that_replays_days_does_not_grow_memory() -> None:
    rollups = OpenRollups()

    for sequence in range(1, 1001):
        rollups.adopt(rollups.draft([new_batch(_AGENT, sequence, at_s=sequence * 60.0)]))

    assert sum(map(len, rollups._parts.values())) == 2


def test_agents_that_come_and_go_do_not_grow_memory_for_ever() -> None:
    rollups = OpenRollups()
    batches = [new_batch(new_agent(agent_id=f"agent-{i}"), 1) for i in range(10_100)]

    rollups.adopt(rollups.draft(batches))

    assert len(rollups._parts) == 10_000
    assert "agent-0" not in rollups._parts


def test_two_stores_number_their_parts_apart() -> None:
    numbers = {
        part.number
        for _ in range(50)
        for part in OpenRollups().draft([new_batch(_AGENT, 1)]).values()
    }

    assert len(numbers) == 50


@pytest.mark.parametrize("figure_count", [0, 1, len(FIGURES)])
def test_sums_come_back_as_they_were_packed(figure_count: int) -> None:
    sums = {name: Statistic(i, i / 3, -1e30 * i) for i, name in enumerate(FIGURES[:figure_count])}

    assert unpacked(7, packed((1, 2, 3), sums)) == RollupPart(
        start_unix_s=7,
        host_sample_count=1,
        gpu_sample_count=2,
        step_count=3,
        statistics=sums,
    )
