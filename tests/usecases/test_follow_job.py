from dataclasses import replace
from datetime import datetime

from spotwright.domain.job_run import JobRun, JobState, NewEvent
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.follow_job import Followed, Memory, follow, remember
from tests.usecases.example_job_run import START, after, agent_record, job_run

RUNNING = job_run(state=JobState.RUNNING)


def look(
    memory: Memory,
    *agents: AgentRecord,
    now: datetime,
    job: JobRun = RUNNING,
    deadline_s: float | None = None,
) -> Followed:
    return follow(job, agents, deadline_s=deadline_s, now=now, memory=memory)


def kinds(events: "list[NewEvent] | Followed") -> list[str]:
    found = events.events if isinstance(events, Followed) else events
    return [event.kind for event in found]


def test_a_silence_is_noticed_once_and_its_end_too() -> None:
    quiet = agent_record("a", last_seen=START)
    told: list[NewEvent] = []
    memory = Memory()
    for now_s, agent in ((30, quiet), (31, quiet), (36, quiet), (41, _seen(quiet, 40))):
        events, memory = look(memory, agent, now=after(now_s))
        told += events

    assert kinds(told) == ["agent-silent", "agent-back"]
    assert told[0].facts == {"agent_id": "a", "last_seen": START.isoformat()}


def test_each_silence_counts_by_itself() -> None:
    agent, memory, told = agent_record("a"), Memory(), list[NewEvent]()
    for now_s, seen_s in ((60, 0), (61, 60), (120, 60), (121, 120)):
        events, memory = look(memory, _seen(agent, seen_s), now=after(now_s))
        told += events

    assert kinds(told) == ["agent-silent", "agent-back"] * 2


def test_an_agent_that_never_sent_anything_is_not_silent() -> None:
    assert kinds(look(Memory(), agent_record("a", last_seen=None), now=after(999))) == []


def test_an_agent_that_left_for_another_job_is_forgotten() -> None:
    _, memory = look(Memory(), agent_record("a"), now=after(60))

    found = look(memory, now=after(65))

    assert (kinds(found), found.memory) == ([], Memory())


def test_the_deadline_counts_from_the_first_progress_and_passes_once() -> None:
    found = [look(Memory(), now=after(now_s), deadline_s=100.0) for now_s in (100, 101)]

    assert [kinds(each) for each in found] == [[], ["deadline-passed"]]
    assert kinds(look(found[1].memory, now=after(102), deadline_s=100.0)) == []
    assert kinds(look(Memory(), now=after(999), job=job_run(), deadline_s=100.0)) == []
    assert kinds(look(Memory(), now=after(999), deadline_s=None)) == []


def test_the_log_is_memory_enough_for_the_next_controller() -> None:
    told: list[NewEvent] = []
    memory = Memory()
    agents = [agent_record("a"), agent_record("b")]
    for now_s, seen_s in ((60, 0), (65, 64)):
        agents[1] = _seen(agents[1], seen_s)
        events, memory = look(memory, *agents, now=after(now_s), deadline_s=10.0)
        told += events

    assert memory == Memory(deadline_passed=True, silent_agents=frozenset({"a"}))
    assert remember(told) == memory
    assert remember(told[2:], remember(told[:2])) == memory


def _seen(agent: AgentRecord, seconds: float) -> AgentRecord:
    return replace(agent, last_seen=after(seconds))
