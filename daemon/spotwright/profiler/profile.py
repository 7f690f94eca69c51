"""A whole profile: what to do in which share of the time, and what came out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.profiler.copies import CopyRates, measure_copies
from spotwright.profiler.devices import Device, open_device
from spotwright.profiler.exchange import PROCESSES, ExchangeStalls, check_address, measure_exchange
from spotwright.profiler.find import find_subject
from spotwright.profiler.loading import InputStalls, measure_input
from spotwright.profiler.memory import MemoryFigures, check_room, measure_memory
from spotwright.profiler.sizes import Sizes, measure_sizes
from spotwright.profiler.step_times import StepTimes, measure_step_times
from spotwright.profiler.training import Clock, Trainee, seed

_STEP_SHARE, _INPUT_SHARE, _EXCHANGE_SHARE = 0.5, 0.2, 0.2  # of the seconds; the rest is counting
_UNSURE_FRACTION = 0.1  # of the time per sample: a wider interval is told

PHASES = {  # where each begins and how much it takes, of the seconds
    "building": (0.0, 0.0),
    "counting": (0.0, 0.1),
    "step times": (0.1, _STEP_SHARE),
    "input": (0.1 + _STEP_SHARE, _INPUT_SHARE),
    "exchange": (0.1 + _STEP_SHARE + _INPUT_SHARE, _EXCHANGE_SHARE),
}

Report = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """What is asked for."""

    target: str
    batch: int  # of the job, per GPU
    batches: tuple[int, ...]  # measured
    data: Path | None = None
    device: str = "auto"
    seconds: float = 60.0
    loader_processes: int = 0
    with_exchange: bool = True
    listen: str | None = None  # ADDRESS:PORT for a process of another host

    def __post_init__(self) -> None:
        for batch in (self.batch, *self.batches):
            if batch < 1:
                raise BadInputError(f"a batch must be at least 1, got {batch}; raise it")
        if len(set(self.batches)) < 2:
            raise BadInputError(
                f"step time against batch needs two batches, got {self.batches}; add one"
            )
        if self.listen is not None:
            check_address("--listen", self.listen)
        if not self.seconds > 0:
            raise BadInputError(f"--seconds must be positive, got {self.seconds:g}")

    @property
    def run_batch(self) -> int:
        """The batch of the job, or the largest measured where that is smaller: for the stalls."""
        return min(self.batch, max(self.batches))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured and counted."""

    options: ProfileOptions
    device_name: str
    is_gpu: bool
    device_memory_gib: float | None  # of the GPU
    thread_count: int
    sizes: Sizes
    memory: MemoryFigures
    steps: StepTimes
    copies: CopyRates
    input: InputStalls | None
    exchange: ExchangeStalls | None
    notes: tuple[str, ...]
    duration_s: float

    @property
    def achieved_flops(self) -> float:
        """FLOPs per second at the job's batch."""
        return self.sizes.flops_per_sample * self.options.batch / self.step_s

    @property
    def step_s(self) -> float:
        """Seconds of a step at the job's batch."""
        return self.steps.law.step_s(self.options.batch).mid


def usual_batches(batch: int) -> tuple[int, ...]:
    """Return quarters of the job's batch, from 2 on: normalisation may refuse a single sample."""
    if batch <= 2:
        return (1, 2)
    return tuple(sorted({max(2, batch * quarter // 4) for quarter in (1, 2, 3, 4)}))


def profile_training(
    options: ProfileOptions, *, report: Report, clock: Clock = time.perf_counter
) -> Profile:
    """Measure in the order in which figures need each other; what cannot be measured is noted.

    Raises:
        BadInputError: the subject cannot be trained as it is, or the batch is too large.
        OutsideWorldError: the model does not fit.
    """
    start_s = clock()
    seed()
    report("building", 0.0)
    trainee = Trainee(find_subject(options.target, data=options.data), open_device(options.device))
    smallest, largest = min(options.batches), max(options.batches)
    report("counting", 0.0)
    sizes = measure_sizes(trainee, batch=smallest)
    memory = measure_memory(trainee, batches=options.batches)
    check_room(trainee, sizes, memory, batch=largest)
    copies = measure_copies(trainee.device, clock=clock)
    steps = measure_step_times(
        trainee,
        batches=options.batches,
        seconds=options.seconds * _STEP_SHARE,
        clock=clock,
        progress=lambda done: report("step times", done),
    )
    fed = _input(trainee, options, report, clock)
    exchange, excuse = _exchange(trainee.device, options, report)
    measured = Profile(
        options=options,
        device_name=trainee.device.name,
        is_gpu=trainee.device.is_gpu,
        device_memory_gib=_device_memory_gib(trainee.device),
        thread_count=torch.get_num_threads(),
        sizes=sizes,
        memory=memory,
        steps=steps,
        copies=copies,
        input=fed,
        exchange=exchange,
        notes=(),
        duration_s=clock() - start_s,
    )
    return replace(measured, notes=(*_notes(measured), *excuse))


def _input(
    trainee: Trainee, options: ProfileOptions, report: Report, clock: Clock
) -> InputStalls | None:
    if trainee.subject.dataset is None:
        return None
    return measure_input(
        trainee,
        batch=options.run_batch,
        processes=options.loader_processes,
        seconds=options.seconds * _INPUT_SHARE,
        clock=clock,
        progress=lambda done: report("input", done),
    )


def _exchange(
    device: Device, options: ProfileOptions, report: Report
) -> tuple[ExchangeStalls | None, tuple[str, ...]]:
    """Return the stalls, or why there are none."""
    if not options.with_exchange:
        return None, ("interconnect: not measured, as asked",)
    count = torch.cuda.device_count() if device.is_gpu else PROCESSES
    if count < 2 and not options.listen:
        return None, ("interconnect: one GPU here, so there is nothing to exchange with",)
    report("exchange", 0.0)
    try:
        stalls = measure_exchange(
            options.target,
            data=options.data,
            batch=options.run_batch,
            seconds=options.seconds * _EXCHANGE_SHARE,
            device=device.torch.type,
            local_count=count,
            listen=options.listen,
        )
    except OutsideWorldError as error:
        if options.listen:  # asked for, unlike the rest
            raise
        return None, (f"interconnect: not measured: {error}",)
    return stalls, ()


def _device_memory_gib(device: Device) -> float | None:
    if not device.is_gpu:
        return None
    return float(torch.cuda.get_device_properties(device.torch).total_memory) / 2**30


def _notes(profile: Profile) -> tuple[str, ...]:
    return (*_device_notes(profile), *_noise_notes(profile.steps), *_input_notes(profile.input))


def _device_notes(profile: Profile) -> tuple[str, ...]:
    if profile.is_gpu:
        return ()
    return (
        "no GPU here: how fast GPUs compute is not measured; a plan derives it from FLOPs and data "
        "sheets (roofline), with a wide interval",
        "no GPU here: there is no PCIe copy rate; catalog figures of each type are planned with",
        "activations are the tensors that autograd saves: a GPU's peak is somewhat higher",
    )


def _noise_notes(steps: StepTimes) -> tuple[str, ...]:
    slope = steps.law.per_sample_s
    unsure = (slope.high - slope.low) / 2 / slope.mid
    notes = []
    if unsure > _UNSURE_FRACTION:
        notes.append(
            f"time per sample is known to {unsure:.0%} only: the machine is busy, or --seconds few"
        )
    if steps.law.misfit_fraction > _UNSURE_FRACTION:
        notes.append(
            f"batches lie {steps.law.misfit_fraction:.0%} off the line: step time is not affine "
            "here, or the machine changed its pace"
        )
    return tuple(notes)


def _input_notes(fed: InputStalls | None) -> tuple[str, ...]:
    if fed is None:
        return ("no dataset: input stalls are not measured, and a plan assumes none",)
    if fed.left_cached_fraction is None:
        return ("no --data: nothing is read from files, so there is no fetch stall to measure",)
    if fed.fetched_samples_per_s is None:
        return (
            f"fetch stall: not measured, for {fed.left_cached_fraction:.0%} of the files stayed "
            "in memory after dropping them: their file system has no disk, or somebody uses them",
        )
    return ()
