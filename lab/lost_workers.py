"""Five of eight asynchronous workers are lost, three come, and the daemon says when it will end.

A lost host takes its agent with it, so that the daemon notices by silence, as it would anywhere.
The daemon follows the job and steers nothing: what it expects is to hold for the hosts that are
there. What it expects before a change cannot know of it, so only what it told after the last one
has a target.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from benchmarks.table import Row, print_rows
from lab.faulty_run import (
    acknowledged,
    fault_scenarios,
    happened,
    longest_gap_s,
    lost_count,
    steps_of,
    tell,
    twice_count,
)
from lab.followed_job import FollowedJob, job_for_fleet
from lab.profile import Profiler
from lab.run import Outcome, run_scenario
from lab.scenario import FaultKind, Scenario
from lab.setting import Setting
from lab.told_forecasts import Told, ToldForecasts

_SOON_S = 45.0  # after a change: 30 s of silence are a loss, and the daemon looks every 5 s
_SETTLED_S = 135.0  # what was measured since a change is told then
_TARGET_FRACTION = 0.10
_MOST_STEPS_WITHOUT = 2.0  # of a worker, in which somebody else makes an update


def measure_lost_workers(setting: Setting) -> None:
    """Five of eight workers are killed and three come, beside what the daemon expects."""
    [scenario] = fault_scenarios(setting.options.scenarios, "lost-workers")
    profiler = Profiler(setting.lab, tell=tell, seconds=setting.options.seconds)
    profile = profiler.profile([scenario])
    steps = steps_of(scenario)
    job = FollowedJob.start(setting, scenario, job_for_fleet(scenario, profile, steps=steps))
    try:
        with ToldForecasts(job) as forecasts:
            outcome = run_scenario(
                setting.lab,
                scenario,
                steps=steps,
                seed=setting.options.seed,
                watch=job.happened,
            )
    finally:
        job.release()
    print_rows("Workers are lost and others come", _training_rows(outcome, scenario))
    rows = _forecast_rows(outcome, forecasts, scenario)
    print_rows("When the daemon said that it would end", rows)


def _training_rows(outcome: Outcome, scenario: Scenario) -> list[Row]:
    applied = outcome.applied["s1"]
    killed_s = outcome.faults_at_s[0]
    gap_s = longest_gap_s(applied, killed_s, applied[-1].at_s)
    step_s = fmean(step.step_s for own in outcome.steps.values() for step in own)
    lost, twice = lost_count(outcome, applied), twice_count(applied)
    losses = _losses(outcome)
    kills = [one.fault for one in happened(outcome, scenario) if one.fault.kind is FaultKind.KILL]
    gone = sum(len(fault.hosts) for fault in kills)
    return [
        Row(
            what=f"longest time without an update, from when {gone} were killed",
            figure=f"{gap_s:.2f} s, {gap_s / step_s:.1f} steps of a worker",
            target=f"<= {_MOST_STEPS_WITHOUT:g} steps",
            is_met=gap_s <= _MOST_STEPS_WITHOUT * step_s,
        ),
        Row(
            what="acknowledged updates that the server does not have",
            figure=f"{lost} of {len(acknowledged(outcome, applied)):,}",
            target="0",
            is_met=lost == 0,
        ),
        Row(
            what="updates counted twice",
            figure=f"{twice} of {applied[-1].version:,}",
            target="0",
            is_met=twice == 0,
        ),
        Row(
            what="mean loss before, between and after the changes",
            figure=", ".join(f"{loss:.3g}" for loss in losses),
            target="falls",
            is_met=losses == sorted(losses, reverse=True),
        ),
    ]


def _losses(outcome: Outcome) -> list[float]:
    """Return the mean loss of each part between changes."""
    edges = [outcome.began_s, *outcome.faults_at_s, float("inf")]
    steps = [step for own in outcome.steps.values() for step in own]
    return [
        fmean(step.loss for step in steps if begin_s <= step.ended_s < end_s)
        for begin_s, end_s in pairwise(edges)
    ]


def _forecast_rows(outcome: Outcome, forecasts: ToldForecasts, scenario: Scenario) -> list[Row]:
    began_s, end_s = outcome.began_s, outcome.applied["s1"][-1].at_s
    lost_s, came_s = outcome.faults_at_s
    lost, came = (len(one.fault.hosts) for one in happened(outcome, scenario))
    first = len(scenario.starters)
    then, last = first - lost, first - lost + came
    moments = [
        (f"{first} workers, when {lost} are lost", lost_s, False),
        (f"{then} workers, soon after that", min(lost_s + _SOON_S, came_s), False),
        (f"{then} workers, when {came} come", came_s, False),
        (f"{last} workers, soon after that", min(came_s + _SOON_S, end_s), True),
        (f"{last} workers, with their speed measured", min(came_s + _SETTLED_S, end_s), True),
    ]
    rows = [_row(what, forecasts.at(at_s), (began_s, end_s), held) for what, at_s, held in moments]
    return [Row(what="it ended", figure=f"{end_s - began_s:.0f} s after it began"), *rows]


def _row(what: str, told: Told | None, course: Sequence[float], is_held: bool) -> Row:
    began_s, end_s = course
    if told is None:
        return Row(what=what, figure="nothing yet", is_met=False if is_held else None)
    error = (told.end_s - end_s) / (end_s - began_s)
    return Row(
        what=what,
        figure=(
            f"{told.end_s - began_s:.0f} s ({told.low_s - began_s:.0f} to "
            f"{told.high_s - began_s:.0f}), {error:+.1%}"
        ),
        target=f"within {_TARGET_FRACTION:.0%}" if is_held else "-",
        is_met=abs(error) <= _TARGET_FRACTION if is_held else None,
    )
