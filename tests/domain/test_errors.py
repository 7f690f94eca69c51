import inspect
import re

import pytest

from spotwright.domain import errors
from spotwright.domain.errors import SpotwrightError, UnknownNameError, nearest_name
from spotwright.domain.plan import SmallestChange

CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__ == errors.__name__
}


def _documented_parents() -> dict[str, str | None]:
    """Read the tree that stands atop the module: a class's parent is the nearest less indented."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"( *)([A-Za-z]+Error)\b", line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2]
        path = [step for step in path if step[0] < depth]
        parents[name] = path[-1][1] if path else None
        path.append((depth, name))
    return parents


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    actual = {name: kind.__bases__[0].__name__ for name, kind in CLASSES.items()}

    assert _documented_parents() | {"SpotwrightError": "Exception"} == actual


def test_every_error_is_a_spotwright_error() -> None:
    assert len(CLASSES) > 10
    assert all(issubclass(kind, SpotwrightError) for kind in CLASSES.values())


def test_every_error_has_a_reason_of_its_own() -> None:
    reasons = [kind.__dict__.get("reason") for kind in CLASSES.values()]

    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", str(reason)) for reason in reasons)
    assert len(set(reasons)) == len(reasons)


@pytest.mark.parametrize(
    ("error", "facts", "way_out"),
    [
        (errors.JobFileError("bad", path="job.yaml", line=7), ["job.yaml:7:"], "bad"),
        (errors.JobFileError("bad", path="job.yaml"), ["job.yaml: "], "bad"),
        (errors.MissingExtraError("refresh", extra="aws"), ["refresh"], "spotwright[aws]"),
        (
            errors.MemoryDoesNotFitError(device="T4", needed_gib=17.2, available_gib=16, batch=64),
            ["64", "17.2 GiB", "T4", "16.0 GiB"],
            "lower the batch",
        ),
        (
            errors.UnreachableTargetError(target_loss=0.4, floor_loss=0.5),
            ["0.4", "0.5"],
            "set goal.loss above 0.5",
        ),
        (
            errors.OutsideFittedRangeError("the batch", value=2048, low=64, high=1024),
            ["2048", "64 to 1024"],
            "fit the law on more runs",
        ),
        (
            errors.NoFeasibleFleetError(
                clashes=["8 nodes take 47 min"],
                changes=[
                    SmallestChange(
                        limit="goal.deadline",
                        now=300,
                        proved=True,
                        needed=2820,
                        text="goal.deadline from 5 min to 47 min",
                    )
                ],
            ),
            ["8 nodes take 47 min"],
            "change goal.deadline from 5 min to 47 min",
        ),
        (
            errors.NoFeasibleFleetError(
                clashes=["both are too little"],
                changes=[],
                together=[
                    SmallestChange(
                        limit=limit, now=1, needed=2, proved=True, text=f"{limit} from 1 to 2"
                    )
                    for limit in ("goal.deadline", "goal.budget")
                ],
                proved=False,
            ),
            ["no fleet was found that meets the goal", "both are too little"],
            "these help together:\n  change goal.deadline from 1 to 2\n  change goal.budget from 1",
        ),
    ],
)
def test_a_message_says_what_was_found_and_what_to_change(
    error: SpotwrightError, facts: list[str], way_out: str
) -> None:
    assert all(fact in str(error) for fact in [*facts, way_out])


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("deadlin", ["deadline", "budget"], "deadline"),
        ("T44", ["T4", "A10G"], "T4"),
        ("G5.XLARGE", ["g5.xlarge"], "g5.xlarge"),
        ("zzz", ["deadline", "budget"], None),
        ("", ["deadline"], None),
        ("deadline", [], None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(
    name: str, known: list[str], expected: str | None
) -> None:
    assert nearest_name(name, known) == expected


def test_a_name_near_to_nothing_lists_a_few_known_names_and_never_many() -> None:
    few = UnknownNameError("cloud", "zzz", known=["gcp", "aws"])
    many = UnknownNameError("type", "zzz", known=[f"a{n}.large" for n in range(100)])

    assert str(few) == "unknown cloud 'zzz'; known: aws, gcp"
    assert str(many) == "unknown type 'zzz'"
