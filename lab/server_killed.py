"""A parameter server is killed without a word, and started again with what it had saved."""

from benchmarks.table import Row, print_rows
from lab.faulty_run import fault_scenarios, happened, run_with_faults, steps_of
from lab.run import Applied, Outcome, server_names
from lab.scenario import FaultKind, Scenario
from lab.setting import Setting
from spotwright.domain.workload import Strategy


def measure_killed_servers(setting: Setting) -> None:
    """A parameter server is killed and comes again: what is lost, and that training ends."""
    rows = []
    for scenario in fault_scenarios(setting.options.scenarios, "server-killed"):
        rows += _rows(run_with_faults(setting, scenario), scenario)
    print_rows("A parameter server is killed and started again", rows)


def _rows(outcome: Outcome, scenario: Scenario) -> list[Row]:
    kill, start = (
        one
        for one in happened(outcome, scenario)
        if one.fault.kind in (FaultKind.KILL, FaultKind.START)
    )
    [name] = kill.fault.hosts
    applied = outcome.applied[name]
    reached = max((one.version for one in applied if one.at_s < start.at_s), default=0)
    again = [one for one in applied if one.at_s >= start.at_s]
    served = outcome.served[server_names(scenario).index(name)]
    resumed = served.resumed_version or 0
    lost, steps = reached - resumed, steps_of(scenario)
    ends = [own[-1].version for own in outcome.applied.values()]  # the first to reach it ends all
    fewer = lost + len(scenario.starters) if len(ends) > 1 else 0
    unit = "updates" if scenario.strategy is Strategy.ASP_PS else "rounds"
    return [
        Row(
            what=f"{scenario.name}: {unit} lost of {reached} at the kill",
            figure=f"{lost}: it goes on from {resumed}",
            target=f"<= {scenario.checkpoint_every}",
            is_met=served.resumed_version is not None and lost <= scenario.checkpoint_every,
        ),
        Row(
            what=f"{scenario.name}: {unit} in the end, on each server",
            figure=", ".join(f"{version:,}" for version in ends),
            target=f"{steps:,}" + (", fewer by those lost and under way" if fewer else ""),
            is_met=max(ends) == steps and min(ends) >= steps - fewer,
        ),
        Row(
            what=f"{scenario.name}: without an update",
            figure=_pause(again, kill.at_s, start.at_s),
        ),
    ]


def _pause(again: list[Applied], killed_s: float, started_s: float) -> str:
    if not again:
        return "for ever"
    paused_s, away_s = again[0].at_s - killed_s, started_s - killed_s
    return f"{paused_s:.1f} s, of which it was away for {away_s:.1f} s"
