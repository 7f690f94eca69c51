from collections.abc import Sequence
from dataclasses import replace

import pytest

from spotwright.domain.shrunk import Part, Resource, ShrunkHost
from spotwright.domain.telemetry import RollupPart, Statistic
from spotwright.usecases.find_shrunk import Sizes, find_shrunk
from spotwright.usecases.follow_job import Memory, remember
from spotwright.usecases.follow_shrunk import follow_shrunk
from tests.usecases.example_job_run import after

CPU, NETWORK = Part("w1", Resource.CPU), Part("w1", Resource.NETWORK)
STEPS = 20
Host = tuple[str, list[RollupPart]]


def minutes(
    figure: str, values: Sequence[float], term: str, seconds: Sequence[float], name: str = "w1"
) -> Host:
    """Return intervals of 10 s of what a host had, and of how long a part of its steps took."""
    parts = [
        RollupPart(
            start_unix_s=10 * i,
            host_sample_count=10,
            step_count=STEPS,
            statistics={
                figure: Statistic(10, 10 * value, value),
                term: Statistic(STEPS, STEPS * took_s, took_s),
            },
        )
        for i, (value, took_s) in enumerate(zip(values, seconds, strict=True))
    ]
    return name, parts


def cpus(values: Sequence[float], seconds: Sequence[float]) -> Host:
    return minutes("cpu_limit_count", values, "compute_s", seconds)


def network(values: Sequence[float], seconds: Sequence[float], name: str = "w1") -> Host:
    return minutes("network_reached_mbps", values, "communication_s", seconds, name)


HALVED = ShrunkHost(part=CPU, before=2.0, now=1.0, slowed=2.0)


def test_a_halved_quota_is_found_with_how_much_slower_its_steps_are() -> None:
    # The change is in the middle of the fifth interval: its figures are of both.
    host = cpus([2, 2, 2, 2, 1.5, 1, 1], [0.1, 0.1, 0.1, 0.1, 0.14, 0.2, 0.2])

    assert find_shrunk([host], {}) == Sizes(shrunk=(HALVED,))


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ([2, 2, 2, 2, 1], [0.1, 0.1, 0.1, 0.1, 0.2]),  # one interval may be an accident
        ([2, 2, 2, 2, 1.5, 1], [0.1, 0.1, 0.1, 0.1, 0.14, 0.2]),  # not yet the same twice
        ([2, 2, 2, 2, 1, 1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # it has enough for its steps
        ([2, 2, 1, 1], [0.1, 0.1, 0.2, 0.2]),  # who knows what it had before
        ([2, 2, 2, 2, 1.7, 1.7], [0.1, 0.1, 0.1, 0.1, 0.2, 0.2]),
    ],
)
def test_what_is_not_sure_is_not_told(values: list[float], seconds: list[float]) -> None:
    assert find_shrunk([cpus(values, seconds)], {}) == Sizes()


def test_a_host_without_steps_has_not_shrunk() -> None:
    name, parts = cpus([2, 2, 2, 2, 1, 1], [0.1] * 6)
    silent = [replace(part, step_count=0, statistics={**part.statistics}) for part in parts[-2:]]

    assert find_shrunk([(name, [*parts[:-2], *silent])], {}) == Sizes()


def test_a_slow_link_is_its_host_s_and_a_slow_server_everybody_s() -> None:
    normal, slow, took_s = [400.0] * 5 + [400] * 2, [400.0] * 5 + [100] * 2, [0.1] * 5 + [0.4] * 2
    waiting = [network(normal, took_s, name) for name in ("w2", "w3")]
    served = [network(slow, took_s, name) for name in ("w2", "w3")]

    found = find_shrunk([network(slow, took_s), *waiting], {})

    assert [host.part for host in found.shrunk] == [NETWORK]
    assert found.shrunk[0].now == 100
    assert found.shrunk[0].slowed == pytest.approx(4)
    assert find_shrunk([network(slow, took_s), *served], {}) == Sizes()


def test_what_has_shrunk_is_told_once_then_when_it_shrinks_further_and_when_it_is_whole() -> None:
    known = {CPU: HALVED}

    assert find_shrunk([cpus([1, 1], [0.2, 0.2])], known) == Sizes()
    less = find_shrunk([cpus([1, 0.5, 0.5], [0.2, 0.4, 0.4])], known)
    assert less.shrunk == (replace(HALVED, now=0.5, slowed=4.0),)
    assert find_shrunk([cpus([1, 2, 2], [0.2, 0.1, 0.1])], known) == Sizes(whole=(HALVED,))


def test_the_log_tells_it_and_the_next_controller_knows_it() -> None:
    found = follow_shrunk(Sizes(shrunk=(HALVED,)), now=after(0), memory=Memory())

    assert [event.kind for event in found.events] == ["host-shrunk"]
    assert found.events[0].text == (
        "w1 has 1 of 2 CPUs left; its compute takes 2.00x as long as before"
    )
    assert remember(found.events) == found.memory
    assert found.memory.shrunk == {CPU: HALVED}
    gone = follow_shrunk(Sizes(whole=(HALVED,)), now=after(60), memory=found.memory)
    assert [event.kind for event in gone.events] == ["host-whole"]
    assert remember([*found.events, *gone.events]) == gone.memory == Memory()
