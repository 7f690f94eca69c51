"""Predicted against measured speed, scenario by scenario."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

from lab.laboratory import Laboratory
from lab.measure import iteration_s, warm_up_steps
from lab.predict import Predicted, predict
from lab.profile import Profile
from lab.run import run_scenario
from lab.scenario import Scenario
from spotwright.domain.workload import Strategy

_LEAST_STEPS = 8  # of each worker, whatever they take
_MOST_STEPS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One scenario, predicted and measured."""

    scenario: Scenario
    predicted: Predicted
    measured_s: float  # between two updates

    @property
    def error_fraction(self) -> float:
        """How far the prediction is off; positive: too slow."""
        return self.predicted.iteration_s.mid / self.measured_s - 1

    @property
    def is_covered(self) -> bool:
        """Whether the measured figure lies in the 90 % interval."""
        low_s, high_s = self.predicted.iteration_s.low, self.predicted.iteration_s.high
        return low_s <= self.measured_s <= high_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What targets are about."""

    count: int
    mean_error_fraction: float
    worst_error_fraction: float
    covered_fraction: float


def summary(rows: Sequence[Compared]) -> Summary:
    """Sum comparisons up."""
    errors = [abs(row.error_fraction) for row in rows]
    return Summary(
        count=len(rows),
        mean_error_fraction=mean(errors),
        worst_error_fraction=max(errors),
        covered_fraction=sum(row.is_covered for row in rows) / len(rows),
    )


def write_predictions(
    path: Path, scenarios: Sequence[Scenario], profile: Profile
) -> dict[str, Predicted]:
    """Predict every scenario and keep that in a file, before any of them runs."""
    found = {scenario.name: predict(scenario, profile) for scenario in scenarios}
    told = {name: asdict(predicted) for name, predicted in found.items()}
    path.write_text(json.dumps(told, indent=1) + "\n")
    return found


def compare(
    lab: Laboratory,
    scenarios: Sequence[Scenario],
    predicted: Mapping[str, Predicted],
    *,
    seconds: float,
    seed: int,
    tell: Callable[[Compared], None],
) -> list[Compared]:
    """Run every scenario for about so many seconds, and tell each as it ends."""
    rows = []
    for scenario in scenarios:
        expected = predicted[scenario.name]
        steps = _steps(scenario, expected, seconds)
        outcome = run_scenario(lab, scenario, steps=steps, seed=seed)
        row = Compared(
            scenario=scenario,
            predicted=expected,
            measured_s=iteration_s(outcome, scenario),
        )
        tell(row)
        rows.append(row)
    return rows


def _steps(scenario: Scenario, predicted: Predicted, seconds: float) -> int:
    """Return how many updates take about so many seconds."""
    per_update = len(scenario.workers) if scenario.strategy is Strategy.ASP_PS else 1
    wanted = round(seconds / predicted.iteration_s.mid)
    counted = max(_LEAST_STEPS * per_update, min(wanted, _MOST_STEPS))
    return counted + warm_up_steps(scenario) * per_update
