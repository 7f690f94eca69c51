from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from spotwright.domain.job_run import JobState, NewEvent
from spotwright.domain.live_term import LiveTerm
from spotwright.domain.prediction import StepTerms
from spotwright.domain.telemetry import RollupPart
from spotwright.domain.workload import Strategy
from spotwright.usecases.control_jobs import JobControl
from spotwright.usecases.follow_job import Memory, remember
from spotwright.usecases.follow_terms import follow_terms
from spotwright.usecases.job_report import report_job
from spotwright.usecases.planned_runs import PlannedRuns
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import after, agent_record, job_run, plan_record
from tests.usecases.step_simulator import PlayedHost, play
from tests.usecases.test_live_terms import RING, planned

SLOW = LiveTerm(
    instance_type="g5.xlarge",
    term="network",
    planned_s=1.0,
    measured_s=2.0,
    is_bottleneck=True,
    text="network term 2.0x predicted on g5.xlarge pool",
)
WELL = replace(SLOW, measured_s=1.0, is_bottleneck=False, text="")
UNTOLD = replace(WELL, measured_s=None)


def test_a_bottleneck_is_told_once_and_once_more_when_it_is_gone() -> None:
    memory, kinds = Memory(), []
    log: list[NewEvent] = []
    for term in (WELL, SLOW, SLOW, UNTOLD, SLOW, WELL, WELL):
        found = follow_terms([term], now=after(0), memory=memory)
        memory = found.memory
        log += found.events
        kinds.append([event.kind for event in found.events])
        assert remember(log) == memory  # the next controller knows as much

    assert kinds == [[], ["bottleneck-found"], [], [], [], ["bottleneck-gone"], []]
    assert log[0].text == SLOW.text
    assert log[0].facts == {
        "instance_type": "g5.xlarge",
        "term": "network",
        "planned_s": "1",
        "measured_s": "2",
    }


def test_terms_that_were_not_looked_at_change_nothing() -> None:
    known = Memory(bottlenecks=frozenset({("g5.xlarge", "network")}))

    assert follow_terms([], now=after(0), memory=known) == ([], known)


def test_a_controller_logs_a_bottleneck_once_however_often_it_looks() -> None:
    store, now = MemoryJobStore(), [after(300)]
    store.add_plan(plan_record())
    store.add_job(job_run(state=JobState.RUNNING), [])
    _send(store, replace(RING, network_s=0.40))
    plans = PlannedRuns(store, lambda _: planned(RING, Strategy.ALLREDUCE))
    control = JobControl(store, plans, replica="a", clock=lambda: now[0])

    for seconds in (0, 5, 10, 40, 80):
        now[0] = after(300 + seconds)
        control.make_round()
    assert _kinds(store).count("bottleneck-found") == 1

    _send(store, RING)
    now[0] = after(300 + 120)
    control.make_round()
    control.make_round()
    assert [kind for kind in _kinds(store) if "bottleneck" in kind] == [
        "bottleneck-found",
        "bottleneck-gone",
    ]


def test_a_controller_looks_at_one_job_at_most_every_thirty_seconds() -> None:
    store, now = _CountingStore(), [after(300)]
    store.add_plan(plan_record())
    store.add_job(job_run(state=JobState.RUNNING), [])
    _send(store, RING)
    plans = PlannedRuns(store, lambda _: planned(RING, Strategy.ALLREDUCE))
    control = JobControl(store, plans, replica="a", clock=lambda: now[0])

    for seconds in range(0, 60, 5):
        now[0] = after(300 + seconds)
        control.make_round()

    assert store.rollup_read_count == 2 * 2  # two looks at two hosts


def test_hosts_that_are_long_gone_take_no_place_of_those_that_step() -> None:
    store = MemoryJobStore()
    store.add_plan(plan_record())
    store.add_job(job_run(state=JobState.RUNNING), [])
    _send(store, replace(RING, network_s=0.40))
    for number in range(70):
        gone = agent_record(f"before-{number:03}", last_seen=after(-400))
        store.agent_records[gone.facts.agent_id] = gone
    plans = PlannedRuns(store, lambda _: planned(RING, Strategy.ALLREDUCE))

    JobControl(store, plans, replica="a", clock=lambda: after(300)).make_round()
    report = report_job("resnet-1", store, plans, now=after(300))

    assert _kinds(store).count("bottleneck-found") == 1
    assert [term.term for term in report.terms if term.is_bottleneck] == ["network"]
    (step,) = [line for line in report.lines if line.figure == "step_s"]
    assert step.measured is not None


def test_a_report_says_what_the_log_says_of_a_bottleneck_that_gets_better() -> None:
    store, now = MemoryJobStore(), [after(300)]
    store.add_plan(plan_record())
    store.add_job(job_run(state=JobState.RUNNING), [])
    plans = PlannedRuns(store, lambda _: planned(RING, Strategy.ALLREDUCE))
    control = JobControl(store, plans, replica="a", clock=lambda: now[0])
    better = replace(RING, compute_s=0.35)  # too well to be found, and not well enough to be gone

    def reported() -> list[str]:
        terms = report_job("resnet-1", store, plans, now=now[0]).terms
        return [term.term for term in terms if term.is_bottleneck]

    _send(store, better)
    control.make_round()
    assert (reported(), "bottleneck-found" in _kinds(store)) == ([], False)
    for terms in (replace(RING, compute_s=0.6), better):
        _send(store, terms)
        now[0] += timedelta(seconds=40)
        control.make_round()
        assert reported() == ["compute"]
    assert "bottleneck-gone" not in _kinds(store)


class _CountingStore(MemoryJobStore):
    rollup_read_count = 0

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        self.rollup_read_count += 1
        return super().rollups(
            agent_id,
            resolution_s=resolution_s,
            start_unix_s=start_unix_s,
            end_unix_s=end_unix_s,
            limit=limit,
        )


def _send(store: MemoryJobStore, terms: StepTerms) -> None:
    hosts = [PlayedHost(name=f"gpu-{i}", terms=terms) for i in range(2)]
    store.agent_records = {host.name: replace(host.agent, last_seen=after(420)) for host in hosts}
    store.rollup_parts = dict(play(hosts, in_step=True, length_s=420))


def _kinds(store: MemoryJobStore) -> list[str]:
    return [event.kind for event in store.events("resnet-1", limit=100)]
