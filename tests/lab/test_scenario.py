"""Scenario files: what they say, and what is refused."""

from pathlib import Path

import pytest

from lab.emulated_gpu import Device
from lab.scenario import FaultKind, Scenario, chosen, load_scenarios
from spotwright.domain.errors import BadInputError
from spotwright.domain.workload import Strategy

DEVICES = {"fast": Device(name="fast", fixed_s=0.01, per_sample_s=0.004, jitter_fraction=0.1)}
GOOD = """\
one:
  strategy: asp-ps
  model: {size: 10 MB, tensors: 20}
  batch: 16
  workers:
    - {count: 2, device: fast, link: 400 Mbit/s}
    - {count: 1, device: fast, link: 100 Mbit/s, late: true}
  servers: {count: 1, link: 1 Gbit/s}
  faults:
    - {at: 5s, kill: [w1]}
    - {at: 10s, link: [w2], to: 50 Mbit/s}
    - {at: 12s, start: [w3]}
  checkpoint: 50
  steps: 2000
"""


def scenario_of(folder: Path, text: str) -> Scenario:
    (folder / "some.yaml").write_text(text)
    [scenario] = load_scenarios(folder, devices=DEVICES).values()
    return scenario


def test_a_scenario_is_what_its_file_says(tmp_path: Path) -> None:
    scenario = scenario_of(tmp_path, GOOD)

    assert scenario.strategy is Strategy.ASP_PS
    assert (scenario.model.parameter_bytes, scenario.model.tensor_count) == (10_000_000, 20)
    assert [(w.name, w.mbps, w.is_late) for w in scenario.workers] == [
        ("w1", 400, False), ("w2", 400, False), ("w3", 100, True),
    ]  # fmt: skip
    assert [w.name for w in scenario.starters] == ["w1", "w2"]
    assert (scenario.server_count, scenario.server_mbps) == (1, 1000)
    assert [(f.at_s, f.kind, f.hosts, f.amount) for f in scenario.faults] == [
        (5, FaultKind.KILL, ("w1",), None),
        (10, FaultKind.LINK, ("w2",), 50),
        (12, FaultKind.START, ("w3",), None),
    ]
    assert (scenario.checkpoint_every, scenario.steps) == (50, 2000)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("asp-ps", "asp", "some.yaml: one: strategy must be one of"),
        ("asp-ps", "serverless", "some.yaml: one: strategy must be one of"),
        ("batch: 16", "batch: 0", "batch must be a whole number from 1 on, got 0"),
        ("batch: 16", "", "some.yaml: one: batch is missing"),
        ("10 MB", "ten", "some.yaml: one: "),
        ("count: 2, device: fast", "count: 2, device: fsat", "did you mean 'fast'?"),
        ("count: 2", "count: 9", "10 workers; there are hosts for 8"),
        (
            "count: 1, link: 1 Gbit/s",
            "count: 3, link: 1 Gbit/s",
            "3 servers; there are hosts for 2",
        ),
        ("kill: [w1]", "kill: [w9]", "there is no host w9"),
        ("kill: [w1]", "burn: [w1]", "one of kill, start"),
        ("link: [w2], to: 50 Mbit/s", "cpus: [w2], to: 0", "more than 0 CPUs"),
        ("link: 100 Mbit/s", "link: -1 Mbit/s", "some.yaml: one: "),
        ("late: true", "lat: true", "nobody knows lat"),
        ("checkpoint: 50", "checkpoint: 0", "checkpoint must be a whole number from 1 on, got 0"),
        ("steps: 2000", "steps: many", "steps must be a whole number from 1 on, got 'many'"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    text = GOOD.replace(before, after, 1)
    assert text != GOOD

    with pytest.raises(BadInputError) as refused:
        scenario_of(tmp_path, text)

    assert told in str(refused.value)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "one: [1"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInputError, match=r"some\.yaml"):
        scenario_of(tmp_path, text)


def test_scenarios_of_all_strategies_are_there_and_can_be_chosen_by_how_they_begin() -> None:
    scenarios = load_scenarios()

    plain = [scenario for scenario in scenarios.values() if not scenario.faults]
    assert len(plain) >= 24
    assert {scenario.strategy for scenario in plain} == {
        Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE,
    }  # fmt: skip
    assert {len(scenario.workers) for scenario in plain} >= {1, 2, 3, 4, 6, 8}
    assert {scenario.model.parameter_bytes for scenario in plain} >= {1_000_000, 50_000_000}
    assert all(s.name.startswith("ring-") for s in chosen(scenarios, ["ring-"]))
    with pytest.raises(BadInputError, match="no scenario 'rnig-2-small'; did you mean"):
        chosen(scenarios, ["rnig-2-small"])
