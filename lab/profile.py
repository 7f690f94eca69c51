"""What is measured before anything is predicted: one worker, alone.

device   compute seconds at two batches: the line through them, and the spread of steps
model    what an exchange with one server takes beyond its bytes at the rate of the link, and
         the CPU time of the server in it
         when DDP has which part of the gradients ready (one process, nobody to send to)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from lab import roles
from lab.emulated_gpu import Device, ModelShape
from lab.hosts import HostProcess
from lab.laboratory import Laboratory
from lab.network import PAYLOAD_FRACTION
from lab.roles import Buckets
from lab.run import Outcome, Step, run_scenario
from lab.scenario import Scenario, WorkerHost
from spotwright.domain.workload import ComputeProfile, Strategy

_LINK_MBPS = 1000.0
_MOST_SECONDS, _LEAST_STEPS = 6.0, 12
_BATCHES = (8, 32)
_WARM_UP_STEPS = 3
_BUCKET_STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What exchanging a model takes."""

    shape: ModelShape
    overhead_s: float  # of an exchange with a server, beyond its bytes
    server_cpu_s: float  # of it, on the server's CPU
    buckets: Buckets | None  # None: no all-reduce was asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything that predictions are made from, beside the rates of links."""

    devices: dict[str, ComputeProfile]
    models: dict[ModelShape, ModelProfile]


class Profiler:
    """Runs one worker at a time."""

    def __init__(
        self, lab: Laboratory, *, tell: Callable[[str], None], seconds: float = _MOST_SECONDS
    ) -> None:
        """Prepare to run each for so many seconds, or for less where that tells enough."""
        self._lab, self._tell, self._runs = lab, tell, 0
        self._seconds = min(seconds, _MOST_SECONDS)

    def profile(self, scenarios: Sequence[Scenario]) -> Profile:
        """Measure each device and each model of some scenarios."""
        devices = {w.device.name: w.device for s in scenarios for w in s.workers}
        shapes = dict.fromkeys(s.model for s in scenarios)
        smallest = min(shapes, key=lambda shape: shape.parameter_bytes)
        quickest = min(devices.values(), key=lambda device: device.step_s(_BATCHES[0]))
        reduced = {s.model for s in scenarios if s.strategy is Strategy.ALLREDUCE}
        return Profile(
            devices={n: self._device(device, smallest) for n, device in devices.items()},
            models={
                shape: self._model(shape, quickest, with_buckets=shape in reduced)
                for shape in shapes
            },
        )

    def _device(self, device: Device, shape: ModelShape) -> ComputeProfile:
        found = []
        for batch in _BATCHES:
            outcome, _ = self._alone(device, shape, batch)
            found.append(_computed_s(outcome))
        small, large = (mean(times) for times in found)
        slope = (large - small) / (_BATCHES[1] - _BATCHES[0])
        return ComputeProfile(
            fixed_s=max(0.0, small - slope * _BATCHES[0]),
            per_sample_s=slope,
            relative_sd=mean(stdev(times) / mean(times) for times in found),
        )

    def _model(self, shape: ModelShape, device: Device, *, with_buckets: bool) -> ModelProfile:
        outcome, link_s = self._alone(device, shape, _BATCHES[0])
        exchanged = [s.communication_s for s in _steady(outcome) if s.communication_s is not None]
        [served] = outcome.served
        return ModelProfile(
            shape=shape,
            overhead_s=max(0.0, mean(exchanged) - link_s),
            server_cpu_s=served.cpu_s_per_update,
            buckets=self._buckets(shape, device) if with_buckets else None,
        )

    def _alone(self, device: Device, shape: ModelShape, batch: int) -> tuple[Outcome, float]:
        """Run one worker; return what came of it, and what its bytes alone would take."""
        self._runs += 1
        size = shape.parameter_bytes / 1e6
        self._tell(f"profile {self._runs}: {device.name}, batch {batch}, {size:g} MB")
        scenario = Scenario(
            name=f"profile-{device.name}-{shape.parameter_bytes}",
            strategy=Strategy.ASP_PS,
            model=shape,
            batch=batch,
            workers=(WorkerHost(name="w1", device=device, mbps=_LINK_MBPS),),
            server_count=1,
            server_mbps=_LINK_MBPS,
        )
        link_s = 2 * shape.parameter_bytes * 8e-6 / (_LINK_MBPS * PAYLOAD_FRACTION)
        steps = max(_LEAST_STEPS, round(self._seconds / (device.step_s(batch) + link_s)))
        return run_scenario(self._lab, scenario, steps=steps, seed=self._runs), link_s

    def _buckets(self, shape: ModelShape, device: Device) -> Buckets:
        task = roles.WorkerTask(
            name="w1", shape=shape, device=device, batch=_BATCHES[1], seed=1, log=Path("/dev/null")
        )
        process = HostProcess(self._lab.hosts["w1"], roles.watch_buckets, task, _BUCKET_STEPS)
        try:
            buckets: Buckets = process.receive()
        finally:
            process.kill()
        return buckets


def _steady(outcome: Outcome) -> Sequence[Step]:
    [steps] = outcome.steps.values()
    return steps[_WARM_UP_STEPS:]


def _computed_s(outcome: Outcome) -> list[float]:
    return [step.compute_s for step in _steady(outcome) if step.compute_s is not None]
