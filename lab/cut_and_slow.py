"""The cable of a worker is pulled and plugged in again; the link of a worker becomes slow.

What the slow link makes of a cluster is predicted by the product's model, from the same profile of
one worker as the speed before it.
"""

from dataclasses import replace
from statistics import median

from benchmarks.table import Row, print_rows
from lab.faulty_run import (
    fault_scenarios,
    happened,
    longest_gap_s,
    lost_count,
    run_with_faults,
    tell,
    twice_count,
)
from lab.measure import iteration_within
from lab.predict import predict
from lab.profile import Profile, Profiler
from lab.run import Outcome
from lab.scenario import Fault, FaultKind, Scenario
from lab.setting import Setting

_TARGET_FRACTION = 0.12  # as of any scenario
_SETTLED_S = 3.0  # after a change: queues and windows are as they will stay
_MOST_STEPS_WITHOUT = 2.0


def measure_cut_and_slow(setting: Setting) -> None:
    """A cable is pulled and plugged in again; a link gets slow, beside the speed predicted."""
    rows = []
    for scenario in fault_scenarios(setting.options.scenarios, "worker-cut"):
        rows += _cut_rows(run_with_faults(setting, scenario), scenario)
    print_rows("The cable of a worker is pulled and plugged in again", rows)
    slowed = fault_scenarios(setting.options.scenarios, "link-slowed")
    profiler = Profiler(setting.lab, tell=tell, seconds=setting.options.seconds)
    profile, rows = profiler.profile(slowed), []
    for scenario in slowed:
        rows += _slow_rows(run_with_faults(setting, scenario), scenario, profile)
    print_rows("The link of a worker gets slow: seconds between updates", rows)


def _cut_rows(outcome: Outcome, scenario: Scenario) -> list[Row]:
    [cut] = [one for one in happened(outcome, scenario) if one.fault.kind is FaultKind.CUT]
    [mend] = [one for one in happened(outcome, scenario) if one.fault.kind is FaultKind.MEND]
    [name] = cut.fault.hosts
    applied = outcome.applied["s1"]
    gap_s = longest_gap_s(applied, cut.at_s, mend.at_s)
    own = [one for one in applied if one.worker == name]
    back = [one for one in own if one.at_s >= mend.at_s]
    step_s = median(step.step_s for own in outcome.steps.values() for step in own)
    gaps = [one.sequence for one in own] != list(range(1, len(own) + 1))
    lost, twice = lost_count(outcome, applied), twice_count(applied)
    return [
        Row(
            what="longest time without an update of the others, meanwhile",
            figure=f"{gap_s:.2f} s, {gap_s / step_s:.1f} steps of a worker",
            target=f"<= {_MOST_STEPS_WITHOUT:g} steps",
            is_met=gap_s <= _MOST_STEPS_WITHOUT * step_s,
        ),
        Row(
            what=f"its first update, after {mend.fault.at_s - cut.fault.at_s:g} s without a cable",
            figure=f"{back[0].at_s - mend.at_s:.1f} s later" if back else "never",
            target="comes back",
            is_met=bool(back),
        ),
        Row(
            what="its updates that were counted: in order, and each once",
            figure=f"{len(own)}, {len(back)} of them after it; {twice} twice",
            target="all once",
            is_met=not gaps and twice == 0,
        ),
        Row(
            what="acknowledged updates of all that the server does not have",
            figure=f"{lost}",
            target="0",
            is_met=lost == 0,
        ),
    ]


def _slow_rows(outcome: Outcome, scenario: Scenario, profile: Profile) -> list[Row]:
    [slowed] = happened(outcome, scenario)
    end_s = min(own[-1].ended_s for own in outcome.steps.values())
    before = (outcome.began_s + _SETTLED_S, slowed.at_s)
    after = (slowed.at_s + _SETTLED_S, end_s)
    [name] = slowed.fault.hosts
    return [
        _speed_row(f"{scenario.name}: before", outcome, scenario, profile, before),
        _speed_row(
            f"{scenario.name}: {name} at {slowed.fault.amount:g} Mbit/s",
            outcome,
            _slowed(scenario, slowed.fault),
            profile,
            after,
        ),
    ]


def _speed_row(
    what: str, outcome: Outcome, scenario: Scenario, profile: Profile, within: tuple[float, float]
) -> Row:
    measured_s = iteration_within(outcome, scenario.strategy, *within)
    expected = predict(scenario, profile).iteration_s
    error = expected.mid / measured_s - 1
    return Row(
        what=what,
        figure=(
            f"{measured_s * 1e3:.1f} ms, predicted {expected.mid * 1e3:.1f} "
            f"({expected.low * 1e3:.0f} to {expected.high * 1e3:.0f}), {error:+.1%}"
        ),
        target=f"within {_TARGET_FRACTION:.0%}",
        is_met=abs(error) <= _TARGET_FRACTION,
    )


def _slowed(scenario: Scenario, fault: Fault) -> Scenario:
    """Return the scenario with its links as they are after a fault."""
    assert fault.amount is not None
    workers = tuple(
        replace(worker, mbps=fault.amount) if worker.name in fault.hosts else worker
        for worker in scenario.workers
    )
    return replace(scenario, workers=workers)
