"""Probes that the daemon asks for."""

import queue
import threading

import pytest

from spotwright_agent.asked_probes import AskedProbes
from spotwright_agent.commands import Probe
from spotwright_agent.readings import ProbeResult


def _probe(peer: str, command_id: str = "c1") -> Probe:
    return Probe(command_id=command_id, peer=peer, duration_s=1, max_mbps=100)


def _measured(probe: Probe) -> ProbeResult:
    return ProbeResult(peer=probe.peer, time_unix_ms=1, command_id=probe.command_id, sent_mbps=90.0)


def test_a_result_says_which_command_it_answers() -> None:
    results: queue.Queue[ProbeResult] = queue.Queue()
    probes = AskedProbes(_measured, on_result=results.put)

    probes.ask(_probe("10.0.0.2", "c9"))

    assert results.get(timeout=30) == _measured(_probe("10.0.0.2", "c9"))


def test_one_host_is_not_probed_twice_in_a_moment_and_another_is() -> None:
    results: queue.Queue[ProbeResult] = queue.Queue()
    probes = AskedProbes(_measured, on_result=results.put)

    found = []
    for peer in ("10.0.0.2", "10.0.0.2", "10.0.0.3"):
        probes.ask(_probe(peer))
        found.append(results.get(timeout=30).problem)

    assert found[0] == ""
    assert "10.0.0.2 was probed a moment ago" in found[1]
    assert found[2] == ""


def test_whoever_has_a_result_may_ask_for_the_next_probe() -> None:
    results: queue.Queue[ProbeResult] = queue.Queue()

    def then_ask(result: ProbeResult) -> None:
        results.put(result)
        if result.command_id == "first":
            probes.ask(_probe("10.0.0.3", "second"))

    probes = AskedProbes(_measured, on_result=then_ask)
    probes.ask(_probe("10.0.0.2", "first"))

    answers = [results.get(timeout=30) for _ in range(2)]
    assert [(answer.command_id, answer.problem) for answer in answers] == [
        ("first", ""),
        ("second", ""),
    ]


def test_a_probe_that_breaks_is_answered_and_logged_and_the_next_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results: queue.Queue[ProbeResult] = queue.Queue()

    def measure(probe: Probe) -> ProbeResult:
        if probe.command_id == "bad":
            raise OverflowError("int too large to convert to float")
        return _measured(probe)

    probes = AskedProbes(measure, on_result=results.put)
    probes.ask(_probe("10.0.0.2", "bad"))
    broken = results.get(timeout=30)
    probes.ask(_probe("10.0.0.3", "good"))

    assert (broken.command_id, broken.peer) == ("bad", "10.0.0.2")
    assert broken.problem == "OverflowError: int too large to convert to float"
    assert "the probe of '10.0.0.2' failed: OverflowError" in caplog.text
    assert results.get(timeout=30) == _measured(_probe("10.0.0.3", "good"))


def test_a_second_probe_beside_a_first_is_refused_at_once() -> None:
    results: queue.Queue[ProbeResult] = queue.Queue()
    may_end = threading.Event()

    def measure(probe: Probe) -> ProbeResult:
        may_end.wait(30)
        return _measured(probe)

    probes = AskedProbes(measure, on_result=results.put)
    probes.ask(_probe("10.0.0.2", "first"))
    probes.ask(_probe("10.0.0.3", "second"))

    refused = results.get(timeout=30)
    may_end.set()
    assert (refused.command_id, refused.problem) == (
        "second",
        "another probe is running on this host",
    )
    assert results.get(timeout=30).command_id == "first"
