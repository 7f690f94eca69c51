"""What the laboratory can do, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.laboratory import Laboratory
from lab.options import Options
from lab.scenario import Scenario, chosen
from spotwright.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where an experiment is made."""

    lab: Laboratory
    client: Client  # of the daemon, which hears an agent on each host
    options: Options


Experiment = Callable[[Setting], None]
EXPERIMENTS: dict[str, Experiment] = {}


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
