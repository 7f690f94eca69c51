"""What the laboratory can do beside comparing scenarios, by name."""

from collections.abc import Callable, Mapping, Sequence

from lab.agent_overhead import measure_agent_overhead
from lab.cut_and_slow import measure_cut_and_slow
from lab.deflation import measure_deflation
from lab.loss_law import check_loss_law
from lab.lost_workers import measure_lost_workers
from lab.scenario import Scenario, chosen
from lab.server_killed import measure_killed_servers
from lab.setting import Setting
from lab.throughput import measure_throughput

Experiment = Callable[[Setting], None]
EXPERIMENTS: dict[str, Experiment] = {
    "throughput": measure_throughput,
    "agent-overhead": measure_agent_overhead,
    "lost-workers": measure_lost_workers,
    "server-killed": measure_killed_servers,
    "cut-and-slow": measure_cut_and_slow,
    "deflation": measure_deflation,
    "loss-law": check_loss_law,
}


def chosen_work(
    names: Sequence[str], scenarios: Mapping[str, Scenario]
) -> tuple[list[Scenario], list[Experiment]]:
    """Return the scenarios and experiments of these names; of none, everything.

    Raises:
        BadInputError: there is nothing of such a name.
    """
    if not names:
        return list(scenarios.values()), list(EXPERIMENTS.values())
    others = [name for name in names if name not in EXPERIMENTS]
    asked = [EXPERIMENTS[name] for name in names if name in EXPERIMENTS]
    return (chosen(scenarios, others) if others else []), asked
