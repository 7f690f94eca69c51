"""Preparation and step times that are known, because they are slept, and what is found of them."""

import time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.table import Row, print_rows
from spotwright.profiler.devices import HOST
from spotwright.profiler.loading import measure_input
from spotwright.profiler.step_times import measure_step_times
from spotwright.profiler.subject import checked_subject
from spotwright.profiler.training import Trainee

_FIXED_S, _SAMPLE_S, _PREP_S, _BATCH = 0.02, 0.003, 0.002, 16
_TARGET = 0.05


class SleptSamples:
    """Each takes its time."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(_PREP_S)
        return torch.ones(4)


def print_known_stalls(seconds: float) -> None:
    """Print what was slept and what was found."""
    built: dict[str, Any] = {
        "model": nn.Linear(4, 1),
        "loss": _slept,
        "batch": lambda size: torch.ones(size, 4),
        "dataset": SleptSamples(),
    }
    trainee = Trainee(checked_subject(built, name="slept"), HOST)
    times = measure_step_times(
        trainee,
        batches=(4, 8, 16),
        seconds=seconds / 2,
        clock=time.perf_counter,
        progress=lambda _: None,
    )
    fed = measure_input(
        trainee,
        batch=_BATCH,
        processes=0,
        seconds=seconds / 2,
        clock=time.perf_counter,
        progress=lambda _: None,
    )
    rows = [
        _row("time per sample", times.law.per_sample_s.mid, _SAMPLE_S),
        _row("fixed time", times.law.fixed_s.mid, _FIXED_S),
        _row(f"prep stall at {_BATCH}", fed.prep_stall_s.mid, _PREP_S * _BATCH),
        _row("preparing a sample, 1 / P", 1 / fed.prepared_samples_per_s, _PREP_S),
    ]
    print_rows("Slept times, found again", rows)


def _slept(model: nn.Module, batch: Tensor) -> Tensor:
    time.sleep(_FIXED_S + _SAMPLE_S * len(batch))
    out: Tensor = model(batch)
    return out.sum()


def _row(what: str, found_s: float, slept_s: float) -> Row:
    error = found_s / slept_s - 1
    return Row(
        what=what,
        figure=f"{found_s * 1e3:.3g} ms of {slept_s * 1e3:.3g} ms, {error:+.1%}",
        target=f"within {_TARGET:.0%}",
        is_met=abs(error) <= _TARGET,
    )
