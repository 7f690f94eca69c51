"""Flags that override the goal of a job file, in the units people write."""

import math
import re
from collections.abc import Callable

from spotwright.domain.errors import BadInputError, UnitError
from spotwright.domain.questions import GoalOverride
from spotwright.domain.units import parse_duration_s, parse_fraction, parse_usd

_ZERO = re.compile(r"\s*0+(\.0*)?\s*(ms|s|m|min|h|d)?\s*")


def read_goal_flags(
    *,
    deadline: str | None,
    budget: str | None,
    confidence: str | None,
    target_loss: float | None,
) -> GoalOverride:
    """Read the flags as they were written, or raise BadInputError that names one."""
    if target_loss is not None and not (math.isfinite(target_loss) and target_loss > 0):
        raise BadInputError(f"--target-loss: must be a positive number, got {target_loss}")
    return GoalOverride(
        deadline_s=_read("--deadline", parse_duration_s, deadline),
        budget_usd=_read("--budget", parse_usd, budget),
        confidence_fraction=_read("--confidence", parse_inner_fraction, confidence),
        target_loss=target_loss,
    )


def read_flag(name: str, parse: Callable[[str], float], text: str) -> float:
    """Read one quantity, or raise BadInputError that names the flag."""
    try:
        return parse(text)
    except UnitError as error:
        raise BadInputError(f"{name}: {error}") from None


def parse_inner_fraction(text: str) -> float:
    """Read a fraction that is neither 0 nor 1."""
    fraction = parse_fraction(text)
    if not 0 < fraction < 1:
        raise UnitError(text, expected="a fraction above 0 and below 1")
    return fraction


def parse_duration_or_zero(text: str) -> float:
    """Read a duration where none at all means something too."""
    return 0.0 if _ZERO.fullmatch(text) else parse_duration_s(text)


def _read(name: str, parse: Callable[[str], float], text: str | None) -> float | None:
    return None if text is None else read_flag(name, parse, text)
