"""Which updates were lost or counted twice, by what servers and workers wrote down."""

from pathlib import Path

import pytest

from lab.faulty_run import fault_scenarios, longest_gap_s, lost_count, twice_count
from lab.run import Applied, Outcome, Step, read_applied
from lab.scenario import FOLDER, FaultKind, load_scenarios
from spotwright.domain.errors import BadInputError


def applied(*lines: tuple[float, int, str, int]) -> list[Applied]:
    return [Applied(*line) for line in lines]


def outcome(**ended_s: list[float]) -> Outcome:
    """Return what workers wrote down that made their first steps at these times."""
    steps = {
        name: tuple(Step(at, number, 0.1, 1.0, None, None) for number, at in enumerate(times, 1))
        for name, times in ended_s.items()
    }
    return Outcome(began_s=0.0, steps=steps)


def test_what_is_acknowledged_and_not_made_is_lost() -> None:
    made = applied((1.0, 1, "w1", 1), (2.0, 2, "w2", 1), (4.0, 3, "w1", 3))

    assert lost_count(outcome(w1=[1.1], w2=[2.1]), made) == 0
    assert lost_count(outcome(w1=[1.1, 3.0], w2=[2.1]), made) == 1


def test_an_answer_after_the_last_update_may_be_a_refusal() -> None:
    made = applied((1.0, 1, "w1", 1), (4.0, 2, "w2", 1))

    assert lost_count(outcome(w1=[1.1, 4.1], w2=[4.05]), made) == 0


def test_what_is_made_again_counts_as_twice() -> None:
    made = applied((1.0, 1, "w1", 1), (2.0, 2, "w2", 1), (3.0, 3, "w1", 1), (4.0, 4, "w1", 1))

    assert twice_count(made) == 2


def test_a_gap_may_lie_at_either_end() -> None:
    made = applied((1.0, 1, "w1", 1), (2.0, 2, "w1", 2), (6.0, 3, "w1", 3))

    assert longest_gap_s(made, 0.5, 2.0) == 1.0
    assert longest_gap_s(made, 0.0, 5.0) == 3.0
    assert longest_gap_s(made, 2.5, 9.0) == 3.5


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "s1.csv").write_text("1.5,1,w1,1\n2.5,2,w2,1\n3.5,3,w")

    assert read_applied(tmp_path / "s1.csv") == (
        Applied(1.5, 1, "w1", 1), Applied(2.5, 2, "w2", 1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("beginning", "kinds"),
    [
        ("lost-workers", {FaultKind.KILL, FaultKind.START}),
        ("server-killed", {FaultKind.KILL, FaultKind.START}),
        ("worker-cut", {FaultKind.CUT, FaultKind.MEND}),
        ("link-slowed", {FaultKind.LINK}),
    ],
)
def test_scenarios_with_faults_are_apart_from_those_that_are_compared(
    beginning: str, kinds: set[FaultKind]
) -> None:
    mine = fault_scenarios(FOLDER, beginning)

    assert all({fault.kind for fault in scenario.faults} == kinds for scenario in mine)
    assert all(scenario.steps for scenario in mine)
    assert not {scenario.name for scenario in mine} & load_scenarios().keys()


def test_a_folder_without_scenarios_of_an_experiment_is_told(tmp_path: Path) -> None:
    (tmp_path / "faults").symlink_to(FOLDER / "faults")

    with pytest.raises(BadInputError, match="has no scenario 'server-kiled'"):
        fault_scenarios(tmp_path, "server-kiled")
