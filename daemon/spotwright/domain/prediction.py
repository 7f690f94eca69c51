"""What a fleet will do: where each step's time goes, when the goal is reached, what it costs."""

from dataclasses import dataclass, fields

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.workload import Strategy


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 90 % interval."""

    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval must hold its middle, got {self}")

    def scaled(self, factor: float) -> "Interval":
        """Return the same interval in another unit."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def shifted(self, amount: float) -> "Interval":
        """Return the same interval with a certain amount added."""
        return Interval(self.low + amount, self.mid + amount, self.high + amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTerms:
    """Seconds of one step that each part adds; overlapped time is not counted, so they sum up."""

    compute_s: float = 0.0
    pcie_s: float = 0.0
    nvlink_s: float = 0.0
    network_s: float = 0.0
    ps_service_s: float = 0.0
    input_stall_s: float = 0.0

    @property
    def total_s(self) -> float:
        """The whole step."""
        return sum(self.by_name().values())

    @property
    def bottleneck(self) -> str:
        """Name of the largest term."""
        terms = self.by_name()
        return max(terms, key=lambda name: terms[name])

    def by_name(self) -> dict[str, float]:
        """Return seconds by term name, without the unit suffix."""
        return {f.name.removesuffix("_s"): getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRates:
    """Rates of a node's links in one direction that a prediction counts with; None: not known."""

    network_mbps: float | None = None
    pcie_mbps: float | None = None  # of one GPU
    nvlink_mbps: float | None = None  # of one GPU; None: it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPrediction:
    """What one group of equal workers does."""

    group: NodeGroup | None  # None: serverless functions
    batch_per_gpu: float
    step_s: float
    terms: StepTerms
    samples_per_s: float  # of the whole group
    memory_gib: float | None  # per GPU; None where the device has none
    memory_limit_gib: float | None
    compute_source: str  # measured, roofline, ...
    rates: LinkRates = LinkRates()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a fleet does with a workload, and when the goal is reached."""

    strategy: Strategy
    fleet: Fleet
    groups: tuple[GroupPrediction, ...]
    iteration_s: Interval  # between updates of the model, by whichever worker
    cluster_steps_per_s: float  # worker steps per second of the whole cluster
    samples_per_s: float
    weighted_batch: float
    convergence_coefficient: float | None
    steps_to_goal: float
    duration_s: Interval  # with what interruptions are expected to cost
    duration_p95_s: float
    deadline_probability: float | None  # of simulated interruptions; None: no deadline
    overall_deadline_probability: float | None  # the same with the model's own error
    uninterrupted_probability: float  # that no spot node is taken away
    cost_usd: Interval | None  # None: some node has no price
    traffic_usd: float  # of it, for bytes between zones
    bottleneck: str
    network_basis: str  # baseline or peak
    notes: tuple[str, ...] = ()
