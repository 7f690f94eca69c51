"""What is trained: its size, its speed on known devices, and how its loss falls.

Every figure is in the unit its name ends with. A part that a strategy does not use is None: the job
file reader sees to it that a workload has what its strategy needs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spotwright.domain.checks import require_fraction, require_not_negative, require_positive
from spotwright.domain.hardware import Precision
from spotwright.domain.offer import Pool

_ROUNDING = 1e-3  # of shares that people write down


class Strategy(StrEnum):
    """How workers exchange gradients."""

    ASP_PS = "asp-ps"  # asynchronous parameter server
    BSP_PS = "bsp-ps"  # bulk-synchronous parameter server
    ALLREDUCE = "allreduce"  # PyTorch DDP and its kin
    SERVERLESS = "serverless"  # functions, a parameter server on an instance

    @property
    def uses_parameter_servers(self) -> bool:
        """Whether fleets for this strategy have nodes in the ps role."""
        return self is not Strategy.ALLREDUCE


class Contention(StrEnum):
    """Which rule says how workers slow each other down at the parameter server."""

    QUEUEING = "queueing"
    SPOTDNN = "spotdnn"  # the paper's formula, for reproduction
    NONE = "none"  # CM-DARE's additive rule


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """Bytes and operations of the trained model."""

    parameter_bytes: float  # what is exchanged each step
    tensor_count: int = 1
    flops_per_sample: float | None = None  # forward and backward
    precision: Precision = Precision.FP32
    parameter_count: float | None = None  # of the whole model, for memory; None: from bytes

    def __post_init__(self) -> None:
        require_positive(self, "parameter_bytes", "tensor_count")
        require_positive(self, "flops_per_sample", "parameter_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What training keeps in GPU memory beside the parameters."""

    optimizer_bytes_per_parameter: float = 8.0  # Adam: two fp32 moments
    activation_bytes_per_sample: float = 0.0
    reserved_bytes: float = 1.0e9  # CUDA context, workspace, fragmentation
    zero_stage: int = 0  # ZeRO: 1 shards optimiser state, 2 gradients too, 3 parameters too

    def __post_init__(self) -> None:
        require_not_negative(self, "optimizer_bytes_per_parameter", "reserved_bytes")
        require_not_negative(self, "activation_bytes_per_sample")
        if self.zero_stage not in range(4):
            raise ValueError(f"zero_stage must be 0 to 3, got {self.zero_stage}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeProfile:
    """Step time of one GPU at batch b: (fixed_s^k + (per_sample_s * b)^k)^(1/k), k the knee.

    A knee of 1 adds the two; a large one takes the larger, as when the host runs ahead of the GPU.
    """

    fixed_s: float = 0.0
    per_sample_s: float
    knee: float = 1.0
    relative_sd: float | None = None  # spread between equal devices; None: the model's default

    def __post_init__(self) -> None:
        require_positive(self, "per_sample_s")
        require_not_negative(self, "fixed_s", "relative_sd")
        if self.knee < 1:
            raise ValueError(f"knee must be at least 1, got {self.knee}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBatch:
    """A batch per GPU: one for all devices, or one for each named device."""

    per_gpu_count: int | None = None
    by_device: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.per_gpu_count is None and not self.by_device:
            raise ValueError("a fixed batch needs per_gpu_count or by_device")
        for batch in (self.per_gpu_count, *self.by_device.values()):
            if batch is not None and batch < 1:
                raise ValueError(f"a batch must be at least 1, got {batch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBatch:
    """spotDNN's rule: 2^floor(log2(per_gib * GPU memory in GiB + offset))."""

    per_gib: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "per_gib")


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalBatch:
    """A batch for the whole cluster, split between the GPUs by their speed."""

    sample_count: int
    max_per_gpu_count: int | None = None

    def __post_init__(self) -> None:
        require_positive(self, "sample_count", "max_per_gpu_count")


BatchRule = FixedBatch | MemoryBatch | GlobalBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterServing:
    """How parameter servers spend their time, and which contention rule applies."""

    default_type: str = "m5.xlarge"
    default_count: int = 1
    contention: Contention = Contention.QUEUEING
    cpu_s_per_tensor: float = 0.108e-3  # of a 4-vCPU server; measured with TensorFlow 1.10
    cpu_s_per_byte: float = 1.26e-9
    overlap_fraction: float = 0.0  # bsp-ps: of the exchange that hides behind compute
    bandwidth_mbps: float | None = None  # None: the instance type's network
    requested_mbps: float | None = None  # spotDNN's B_req: what one worker draws alone
    contention_slope: float | None = None  # spotDNN's a1 and b1 in P = min(a1 sqrt(n) + b1, 1)
    contention_offset: float | None = None
    largest_shard_fraction: float = 1.0  # of the bytes, with several servers

    def __post_init__(self) -> None:
        require_positive(self, "default_count", "bandwidth_mbps", "requested_mbps")
        require_not_negative(self, "cpu_s_per_tensor", "cpu_s_per_byte")
        require_fraction(self, "overlap_fraction", "largest_shard_fraction")
        needed = (self.requested_mbps, self.contention_slope, self.contention_offset)
        if self.contention is Contention.SPOTDNN and None in needed:
            raise ValueError("spotdnn contention needs requested_mbps, slope and offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Measured rates of one instance type; None: from the catalog."""

    network_mbps: float | None = None
    intra_mbps: float | None = None  # between the GPUs of one node
    sharing_fraction: float | None = None  # slowdown of a full node by its own GPUs

    def __post_init__(self) -> None:
        require_positive(self, "network_mbps", "intra_mbps")
        require_not_negative(self, "sharing_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientBucket:
    """Gradients that are sent together."""

    ready_fraction: float  # of compute, when the last of them is there
    bytes_fraction: float  # of all gradients

    def __post_init__(self) -> None:
        require_fraction(self, "ready_fraction", "bytes_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllreduceTuning:
    """How gradients travel; the defaults are the middle of what was fitted on measured clusters."""

    head_fraction: float = 0.45  # of compute, before the first bucket of gradients is ready
    buckets: tuple[GradientBucket, ...] = ()  # in the order of sending; empty: many small ones
    overlap_power: float = 8.0  # how sharply compute and communication overlap
    gpu_spread_fraction: float = 0.04  # of GPU speeds from step to step: the slowest decides
    link_spread_fraction: float | None = None  # of link speeds; None: by kind of network
    two_node_loss: float | None = None  # a ring of two nodes is slower; None: by kind of network
    hop_loss: float | None = None  # per GPU in the ring; None: from the message size
    compression_ratio: float = 1.0
    links: Mapping[str, Links] = field(default_factory=dict)  # by instance type

    def __post_init__(self) -> None:
        require_fraction(self, "head_fraction")
        require_not_negative(self, "gpu_spread_fraction", "link_spread_fraction")
        require_not_negative(self, "two_node_loss", "hop_loss")
        require_positive(self, "compression_ratio")
        if self.overlap_power < 1:
            raise ValueError(f"overlap_power must be at least 1, got {self.overlap_power}")
        sent = sum(bucket.bytes_fraction for bucket in self.buckets)
        if self.buckets and not math.isclose(sent, 1.0, abs_tol=_ROUNDING):
            raise ValueError(f"buckets must hold all gradients together, got {sent:g} of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInterval:
    """Conformal interval of the step time: T exp(quantile * hypot(base, network * its share))."""

    low_quantile: float
    high_quantile: float
    base_scale: float
    network_scale: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "base_scale")
        require_not_negative(self, "network_scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerlessLaw:
    """lambdaDNN: speed and storage bandwidth of a function by its memory."""

    samples_per_s_per_mb: float | None = None  # speed = slope * MB + offset, as published
    samples_per_s_offset: float = 0.0
    s_per_sample: float = 0.0  # or, fitted: seconds per sample = this + the next / MB
    mb_s_per_sample: float | None = None
    storage_mbps_per_mb: float = 0.0
    storage_mbps_offset: float = 920.0
    storage_max_mbps: float = 920.0
    function_max_mbps: float | None = 672.0  # None: only the server limits the exchange
    batch_per_function_count: int
    max_global_batch_count: int
    timeout_s: float = 900.0
    checkpoint_margin_s: float = 30.0
    resume_s: float = 5.0
    usd_per_gib_s: float = 1.66667e-5

    def __post_init__(self) -> None:
        require_positive(self, "batch_per_function_count", "max_global_batch_count")
        require_positive(
            self, "storage_max_mbps", "function_max_mbps", "timeout_s", "usd_per_gib_s"
        )
        require_not_negative(self, "checkpoint_margin_s", "resume_s", "s_per_sample")


USUAL_WORKER_EXPONENT = 0.5  # of the number of asynchronous workers, in both published laws


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotdnnLoss:
    """L = (c2 b_w + c3) sqrt((R + c4) n) / (j + c1) + c5, trusted only where it was fitted."""

    c1: float
    c2: float
    c3: float
    c4: float
    c5: float
    batch_range: tuple[float, float]
    coefficient_range: tuple[float, float] = (0.0, 1.0)
    relative_sd: float = 0.06  # of the iterations to a loss

    def __post_init__(self) -> None:
        require_positive(self, "c3")
        require_not_negative(self, "c4", "c5", "relative_sd")
        low, high = self.batch_range
        if self.c2 > 0 or not 0 < low <= high or -self.c2 * high >= self.c3:
            raise ValueError(
                f"the law holds for c2 <= 0 and batches below c3/|c2|, got c2 = {self.c2:g}, "
                f"c3 = {self.c3:g} and batches of {low:g} to {high:g}"
            )

    @property
    def floor_loss(self) -> float:
        """The loss that training approaches and never reaches."""
        return self.c5


@dataclass(frozen=True, slots=True, kw_only=True)
class CynthiaLoss:
    """L = k0 / (s / n^worker_exponent + k2) + k1 after s iterations; synchronous: of n = 1.

    Cynthia has k2 = 0 and the square root of n, which holds where the learning rate falls with
    sqrt(n). At a constant rate that is stable, stale gradients cost far less.
    """

    k0: float
    k1: float
    k2: float = 0.0
    worker_exponent: float = USUAL_WORKER_EXPONENT
    relative_sd: float = 0.06

    def __post_init__(self) -> None:
        require_positive(self, "k0")
        require_not_negative(self, "k1", "k2", "relative_sd")
        if not 0 <= self.worker_exponent <= 1:
            raise ValueError(f"worker_exponent is from 0 to 1, got {self.worker_exponent}")

    @property
    def floor_loss(self) -> float:
        """The loss that training approaches and never reaches."""
        return self.k1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScaleLaw:
    """Steps = minimum_steps * (1 + noise_scale_samples / global batch)."""

    minimum_steps: float
    noise_scale_samples: float
    loss: float  # the loss both figures were measured for
    relative_sd: float = 0.10

    def __post_init__(self) -> None:
        require_positive(self, "minimum_steps", "loss")
        require_not_negative(self, "noise_scale_samples")


LossLaw = SpotdnnLoss | CynthiaLoss | NoiseScaleLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What one epoch reads."""

    sample_count: float
    size_bytes: float | None = None
    tokens_per_sample: float | None = None

    def __post_init__(self) -> None:
        require_positive(self, "sample_count", "size_bytes", "tokens_per_sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPipeline:
    """How fast samples can be fetched and prepared on one node."""

    prep_samples_per_s_per_vcpu: float | None = None
    cached_fraction: float = 1.0
    disk_mbps: float | None = None  # None: the instance type's block storage
    memory_mbps: float = 80_000.0  # reading from the page cache

    def __post_init__(self) -> None:
        require_positive(self, "prep_samples_per_s_per_vcpu", "disk_mbps", "memory_mbps")
        require_fraction(self, "cached_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long spot nodes of one type ran, and which of them were taken away."""

    hours: tuple[float, ...]
    revoked: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.hours or len(self.hours) != len(self.revoked) or min(self.hours) <= 0:
            raise ValueError("lifetimes need positive hours, and revoked for each of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotBehaviour:
    """What an interruption costs this job."""

    checkpoint_s: float | None = None  # None: from the size, by the measured law
    restart_s: float = 120.0  # from revocation to a replacement that trains
    common_shock_fraction: float = 0.5  # of the hazard, that takes a whole pool at once
    lifetimes: Mapping[str, Lifetimes] = field(default_factory=dict)  # measured, by instance type
    # Losses per hour of one node that a controller has seen; they override everything else.
    hazards_per_hour: Mapping[Pool, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "checkpoint_s")
        require_not_negative(self, "restart_s")
        require_fraction(self, "common_shock_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Everything about a training job that does not depend on what it runs on."""

    strategy: Strategy
    model: ModelSize
    batch: BatchRule | None = None  # None: serverless, whose law has its own rule
    compute: Mapping[str, ComputeProfile] = field(default_factory=dict)  # by GPU or type name
    efficiency_fraction: float = 0.35  # of a GPU's peak, used where nothing was measured
    memory: MemoryUse = field(default_factory=MemoryUse)
    parameter_serving: ParameterServing | None = None
    allreduce: AllreduceTuning | None = None
    serverless: ServerlessLaw | None = None
    convergence: LossLaw | None = None
    dataset: Dataset | None = None
    input: InputPipeline | None = None
    spot: SpotBehaviour = field(default_factory=SpotBehaviour)
    pcie_mbps: float | None = None  # None: the instance type's
    interval: StepInterval | None = None  # None: not calibrated, from the spread of devices

    def __post_init__(self) -> None:
        if not 0 < self.efficiency_fraction <= 1:
            raise ValueError(f"efficiency_fraction must be in (0, 1], got {self}")
        require_positive(self, "pcie_mbps")
