"""Hosts become less while they train: what agents tell, and what the daemon expects and decides.

Of one worker the CPU quota is cut, then of another the network. The job is longer than the run, by
so much that its deadline is a matter of hours: with a loose one a slow node is worth keeping, with
a tight one it is not. Workers are on spot nodes, whose pool gives no more once it has cut what it
gave; others are three times as dear. Nobody carries out what is decided, so that the speed with the
slow nodes can be measured.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from benchmarks.table import Row, print_rows
from lab.faulty_run import Happened, fault_scenarios, happened
from lab.followed_job import FollowedJob, job_for_fleet
from lab.measure import iteration_within
from lab.predict import predict
from lab.profile import Profile, Profiler
from lab.run import Outcome, run_scenario
from lab.scenario import Fault, FaultKind, Scenario
from lab.setting import Setting
from spotwright.domain.job import JobSpec, Target, TargetKind
from spotwright.domain.job_run import Event, Steer
from spotwright.domain.offer import Market
from spotwright.domain.shrunk import Resource
from spotwright.domain.telemetry import RESOLUTIONS_S
from spotwright.domain.workload import Strategy

_LOOSE, _TIGHT = 1.25, 1.08  # deadlines over the time that the job takes with whole nodes
_JOB_S = 4 * 3600.0
_LASTS_S = 60.0  # how long a run goes on after its last fault
_SETTLED_S = 5.0  # after a change
_TARGET_FRACTION = 0.12  # as of any scenario
_FIGURES = {FaultKind.CPUS: "cpu_limit_count", FaultKind.LINK: "network_reached_mbps"}
_DECIDED = ("kept", "replanned", "node-replaced", "goal-out-of-reach", "waiting")


def measure_deflation(setting: Setting) -> None:
    """A CPU quota and a network are cut: what the daemon tells, predicts and decides."""
    scenarios = fault_scenarios(setting.options.scenarios, "deflation")
    profiler = Profiler(setting.lab, tell=_tell, seconds=setting.options.seconds)
    profile = profiler.profile(scenarios)
    for scenario in scenarios:
        first = replace(scenario, faults=scenario.faults[:1])
        if len(scenario.faults) > 1:
            _Run(setting, scenario, profile, slack=_LOOSE).measure()
        _Run(setting, first, profile, slack=_TIGHT).measure()


class _Run:
    """One scenario under one deadline."""

    def __init__(
        self, setting: Setting, scenario: Scenario, profile: Profile, *, slack: float
    ) -> None:
        self._setting, self._scenario, self._profile = setting, scenario, profile
        self._slack = slack

    def measure(self) -> None:
        """Run it, and tell what came of it."""
        setting, scenario = self._setting, self._scenario
        setting.lab.reset()
        job = FollowedJob.start(
            setting, scenario, self._job(), steer=Steer.ANNOUNCE, market=Market.SPOT
        )
        try:
            since_unix_s = time.time() - time.monotonic()
            outcome = run_scenario(
                setting.lab, scenario, steps=self._steps(), seed=setting.options.seed
            )
            noticed = _Noticed(setting, events=job.events, since_unix_s=since_unix_s)
            plan = _plan_row(job)
        finally:
            job.release()
        deadline = f"{self._slack:g} times the time that it takes"
        print_rows(f"{scenario.name}, deadline {deadline}", [plan, *self._rows(outcome, noticed)])

    def _job(self) -> JobSpec:
        """Return a job that needs all hosts to be in time."""
        scenario, iteration_s = self._scenario, self._expected_s(0)
        job = job_for_fleet(scenario, self._profile, steps=1)
        counts = {pool.instance_type: n for pool, n in job.limits.min_count_by_pool.items()}
        updates = _JOB_S / iteration_s
        each = 1 if scenario.strategy is Strategy.ASP_PS else len(scenario.starters)
        target = Target(kind=TargetKind.SAMPLES, value=round(updates * each * scenario.batch))
        return replace(
            job,
            goal=replace(job.goal, target=target, deadline_s=_JOB_S * self._slack),
            limits=replace(job.limits, min_count_by_pool={}, max_count_by_type=counts),
        )

    def _steps(self) -> int:
        """Return how many updates take as long as the run is to last."""
        faults = self._scenario.faults
        edges_s = [0.0, *(fault.at_s for fault in faults)]
        lasts_s = [b - a for a, b in pairwise([*edges_s, edges_s[-1] + self._lasts_s])]
        return round(sum(s / self._expected_s(i) for i, s in enumerate(lasts_s)))

    @property
    def _lasts_s(self) -> float:
        return min(_LASTS_S, self._scenario.faults[0].at_s * 1.5)

    def _expected_s(self, count: int) -> float:
        """Return the time between updates after so many faults, from what was done to hosts."""
        found = _after(self._scenario, self._profile, self._scenario.faults[:count])
        return predict(*found).iteration_s.mid

    def _rows(self, outcome: Outcome, noticed: "_Noticed") -> list[Row]:
        faults = happened(outcome, self._scenario)
        end_s = min(own[-1].ended_s for own in outcome.steps.values())
        edges_s = [outcome.began_s, *(fault.at_s for fault in faults), end_s]
        measured = [
            iteration_within(outcome, self._scenario.strategy, begin_s + _SETTLED_S, until_s)
            for begin_s, until_s in pairwise(edges_s)
        ]
        rows = [_speed_row("before, from a profile", self._expected_s(0), measured[0])]
        for number, fault in enumerate(faults, start=1):
            until_s = edges_s[number + 1]
            name = f"{fault.fault.hosts[0]}, {_words(fault.fault)}"
            rows.append(noticed.figures(name, fault, until_s))
            rows.append(noticed.told(name, fault, until_s))
            decided = noticed.decision(fault, until_s)
            if decided is not None:
                share = float(decided.facts["speed_share"])
                what = f"{name}: speed with it, told by the daemon as {share:.0%} of the plan's"
                rows.append(_speed_row(what, self._expected_s(0) / share, measured[number]))
            rows.append(
                _speed_row(
                    f"{name}: the same from what was done to it",
                    self._expected_s(number),
                    measured[number],
                )
            )
            rows.append(self._decision_row(name, decided))
        return rows

    def _decision_row(self, name: str, decided: Event | None) -> Row:
        what = f"{name}: what the daemon decides"
        if decided is None:
            return Row(what=what, figure="nothing yet")
        return Row(what=what, figure=f"{decided.kind}: {decided.facts['reason']}")


class _Noticed:
    """What agents have told and the daemon has logged, by the clock that all processes share."""

    def __init__(self, setting: Setting, *, events: Sequence[Event], since_unix_s: float) -> None:
        self._setting, self._events, self._since_unix_s = setting, events, since_unix_s

    def figures(self, name: str, fault: Happened, until_s: float) -> Row:
        """Return what the agent of a host told before and after."""
        [host] = fault.fault.hosts
        figure = _FIGURES[fault.fault.kind]
        page = self._setting.client.list_rollups(
            host,
            start=self._time(fault.at_s - _LASTS_S),
            end=self._time(until_s),
        )
        at_unix_s = self._since_unix_s + fault.at_s
        told = [
            (part.start_unix_s, part.statistics[figure].mean)
            for part in page.rollups
            if figure in part.statistics
        ]
        before = [value for begins_s, value in told if begins_s + RESOLUTIONS_S[0] <= at_unix_s]
        after = [value for begins_s, value in told if begins_s >= at_unix_s]
        both = (f"{median(values):.3g}" if values else "nothing" for values in (before, after))
        return Row(what=f"{name}: {figure} that its agent tells", figure=", then ".join(both))

    def told(self, name: str, fault: Happened, until_s: float) -> Row:
        """Return when a host was named, and with what."""
        for event in self._between(fault.at_s, until_s):
            if event.kind == "host-shrunk" and _is_of(event, fault.fault):
                later_s = self._at_s(event) - fault.at_s
                figure = f"{later_s:.0f} s later: {event.text}"
                return Row(what=f"{name}: told", figure=figure, target="told", is_met=True)
        return Row(what=f"{name}: told", figure="not in time", target="told", is_met=False)

    def decision(self, fault: Happened, until_s: float) -> Event | None:
        """Return the decision about a host."""
        for event in self._between(fault.at_s, until_s):
            named = event.facts.get("shrunk", "").split(", ")
            if event.kind in _DECIDED and fault.fault.hosts[0] in named:
                return event
        return None

    def _between(self, since_s: float, until_s: float) -> list[Event]:
        return [event for event in self._events if since_s <= self._at_s(event) <= until_s]

    def _time(self, at_s: float) -> datetime:
        return datetime.fromtimestamp(self._since_unix_s + at_s, UTC)

    def _at_s(self, event: Event) -> float:
        return event.time.timestamp() - self._since_unix_s


def _after(
    scenario: Scenario, profile: Profile, faults: Sequence[Fault]
) -> tuple[Scenario, Profile]:
    """Return a scenario, and what its devices do, as they are after some faults."""
    workers, devices = list(scenario.workers), dict(profile.devices)
    for fault in faults:
        assert fault.amount is not None
        for place, worker in enumerate(workers):
            if worker.name not in fault.hosts:
                continue
            if fault.kind is FaultKind.LINK:
                workers[place] = replace(worker, mbps=fault.amount)
                continue
            slow, known = (
                f"{worker.device.name}, {fault.amount:g} CPUs",
                devices[worker.device.name],
            )
            devices[slow] = replace(
                known,
                fixed_s=known.fixed_s / fault.amount,
                per_sample_s=known.per_sample_s / fault.amount,
            )
            workers[place] = replace(worker, device=replace(worker.device, name=slow))
    return replace(scenario, workers=tuple(workers)), replace(profile, devices=devices)


def _is_of(event: Event, fault: Fault) -> bool:
    resource = Resource.NETWORK if fault.kind is FaultKind.LINK else Resource.CPU
    return event.facts["agent_id"] in fault.hosts and event.facts["resource"] == resource


def _plan_row(job: FollowedJob) -> Row:
    """Return whether the plan is for the hosts that there are; else decisions are about others."""
    fleet = job.planned.plan.prediction.fleet.workers
    planned = Counter({g.offer.pool: g.node_count for g in fleet if g.offer})
    told = ", ".join(f"{count} {pool}" for pool, count in sorted(planned.items()))
    is_met = planned == Counter(job.pools.values())
    return Row(what="workers of the plan", figure=told, target="all hosts", is_met=is_met)


def _words(fault: Fault) -> str:
    unit = "Mbit/s" if fault.kind is FaultKind.LINK else "CPUs"
    return f"{fault.amount:g} {unit} left"


def _speed_row(what: str, expected_s: float, measured_s: float) -> Row:
    error = expected_s / measured_s - 1
    return Row(
        what=what,
        figure=f"{measured_s * 1e3:.1f} ms, predicted {expected_s * 1e3:.1f}, {error:+.1%}",
        target=f"within {_TARGET_FRACTION:.0%}",
        is_met=abs(error) <= _TARGET_FRACTION,
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
