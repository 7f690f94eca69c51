"""The shape of a job file: its keys as people write them; `to_domain` gives them units."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from spotwright.adapters.jobfile.quantities import (
    Amount,
    Bytes,
    Count,
    Duration,
    DurationOrZero,
    Flops,
    Fraction,
    Number,
    PoolName,
    Quota,
    Rate,
    Time,
    Usd,
)
from spotwright.domain.hardware import Cloud, Precision
from spotwright.domain.job import NetworkRate, Placement
from spotwright.domain.offer import Market
from spotwright.domain.workload import Contention, Strategy

ZeroStage = Annotated[int, Field(ge=0, le=3), WithJsonSchema({"enum": [0, 1, 2, 3]})]


class Section(BaseModel):
    """A mapping with known keys only."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MemorySection(Section):
    """What training keeps in GPU memory beside the parameters."""

    optimizer_bytes_per_parameter: Number = Field(8.0, ge=0)
    activations_per_sample: Bytes | None = Field(None, description="bytes kept for the backward")
    reserved: Bytes = Field(1.0e9, description="CUDA context, workspace, fragmentation")
    zero_stage: ZeroStage = 0


class ModelSection(Section):
    """Size of the model."""

    parameter_size: Bytes = Field(description="bytes exchanged in each step")
    parameters: Amount | None = Field(None, description="number of parameters, for memory")
    tensors: Count = Field(1, description="number of parameter tensors")
    flops_per_sample: Flops | None = Field(None, description="forward and backward of one sample")
    precision: Precision = Precision.FP32
    memory: MemorySection = MemorySection()


class ComputeEntry(Section):
    """Measured speed of one device: `step` at `batch`, or `fixed` + `per_sample` x batch."""

    step: Duration | None = Field(None, description="seconds of compute at that batch")
    batch: Count | None = Field(None, description="samples per GPU when step was measured")
    fixed: DurationOrZero | None = Field(
        None, description="seconds that do not depend on the batch"
    )
    per_sample: Duration | None = Field(None, description="seconds for each further sample")
    knee: Number = Field(1.0, ge=1, description="1 adds fixed and per_sample, more blends them")
    spread: Fraction | None = Field(None, description="standard deviation between equal devices")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        names = ("step", "batch", "fixed", "per_sample")
        given = {name for name in names if getattr(self, name) is not None}
        if given not in ({"step", "batch"}, {"per_sample"}, {"per_sample", "fixed"}):
            raise ValueError("give either step and batch, or per_sample (and fixed)")
        return self


class MemoryRule(Section):
    """spotDNN's rule: the largest power of two below per_gib x GPU memory + offset."""

    per_gib: Number = Field(gt=0)
    offset: Number = 0.0


class BatchSection(Section):
    """How many samples a step takes: exactly one of the four rules."""

    per_gpu: Count | None = Field(None, description="the same on every GPU")
    per_gpu_by_device: dict[str, Count] | None = Field(None, description="by GPU or type name")
    by_memory: MemoryRule | None = None
    whole: Count | None = Field(None, description="of the whole cluster, split by speed")
    max_per_gpu: Count | None = Field(None, description="with whole: what fits one GPU")

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = (self.per_gpu, self.per_gpu_by_device, self.by_memory, self.whole)
        if sum(rule is not None for rule in rules) != 1:
            raise ValueError("give exactly one of per_gpu, per_gpu_by_device, by_memory, whole")
        if self.max_per_gpu is not None and self.whole is None:
            raise ValueError("max_per_gpu goes with whole: remove it, or give whole")
        return self


class ParameterServerSection(Section):
    """The parameter servers and what limits them."""

    type: str = Field("m5.xlarge", description="instance type unless a fleet names another")
    count: Count = 1
    contention: Contention = Contention.QUEUEING
    cpu_per_tensor: DurationOrZero = Field(0.108e-3, description="of a 4-vCPU server, each tensor")
    cpu_per_mb: DurationOrZero = Field(1.26e-3, description="of a 4-vCPU server, each 10^6 bytes")
    overlap: Fraction = Field(0.0, description="bsp-ps: exchange that hides behind compute")
    bandwidth: Rate | None = Field(None, description="of one server; else its type's network")
    requested_bandwidth: Rate | None = Field(None, description="spotDNN's B_req")
    contention_slope: Number | None = Field(None, description="spotDNN's a1")
    contention_offset: Number | None = Field(None, description="spotDNN's b1")
    largest_shard: Fraction = Field(1.0, description="of the bytes, with several servers")

    @model_validator(mode="after")
    def _spotdnn_is_complete(self) -> Self:
        needed = (self.requested_bandwidth, self.contention_slope, self.contention_offset)
        if self.contention is Contention.SPOTDNN and None in needed:
            raise ValueError(
                "contention: spotdnn needs requested_bandwidth, contention_slope, contention_offset"
            )
        return self


class LinksSection(Section):
    """Measured rates of one instance type."""

    network: Rate | None = Field(None, description="between nodes, as all-reduce achieves it")
    intra: Rate | None = Field(None, description="between the GPUs of one node")
    sharing: Number | None = Field(None, ge=0, description="slowdown of a full node")


class BucketSection(Section):
    """Gradients that are sent together."""

    ready: Fraction = Field(description="share of compute when the last of them is there")
    share: Fraction = Field(description="of the bytes of all gradients")


class AllreduceSection(Section):
    """Gradient exchange without servers; `spotwright calibrate` fits these from measured steps."""

    head: Fraction = Field(0.45, description="share of compute before the first bucket is ready")
    buckets: list[BucketSection] = Field([], description="as sent; in place of head, if known")
    overlap_power: Number = Field(8.0, ge=1)
    gpu_spread: Number = Field(0.04, ge=0)
    link_spread: Number | None = Field(None, ge=0)
    two_node_loss: Number | None = Field(None, ge=0)
    hop_loss: Number | None = Field(None, ge=0)
    compression: Number = Field(1.0, gt=0, description="bytes before / bytes on the wire")
    links: dict[str, LinksSection] = Field({}, description="by instance type")


class IntervalSection(Section):
    """90 % interval of the step time, from the residuals of a calibration."""

    low: Number = Field(le=0, description="quantile of the scaled log residual")
    high: Number = Field(ge=0)
    base: Number = Field(gt=0, description="scale of the noise")
    network: Number = Field(0.0, ge=0, description="its growth with the share of communication")


class LineSection(Section):
    """A straight line in the memory of a function, in MB."""

    per_mb: Number
    offset: Number


class CurveSection(Section):
    """base + per_memory / MB."""

    base: Number = Field(0.0, ge=0)
    per_memory: Number = Field(gt=0)


class ServerlessSection(Section):
    """lambdaDNN's laws for one model."""

    samples_per_s: LineSection | None = Field(None, description="speed of one function")
    seconds_per_sample: CurveSection | None = Field(None, description="or its inverse, fitted")
    storage_mb_per_s: LineSection | None = Field(None, description="S3 to one function")
    storage_max: Rate = 920.0
    function_max: Rate | None = Field(672.0, description="null: only the server limits it")
    batch_per_function: Count
    max_global_batch: Count
    timeout: Duration = 900.0
    checkpoint_margin: Duration = 30.0
    resume: Duration = 5.0
    usd_per_gib_s: Number = Field(1.66667e-5, gt=0)

    @model_validator(mode="after")
    def _one_speed_law(self) -> Self:
        if (self.samples_per_s is None) == (self.seconds_per_sample is None):
            raise ValueError("give either samples_per_s or seconds_per_sample")
        return self


class SpotdnnSection(Section):
    """spotDNN's loss law, with the range it was fitted on."""

    law: Literal["spotdnn"]
    c1: Number
    c2: Number = Field(le=0)
    c3: Number = Field(gt=0)
    c4: Number = Field(ge=0)
    c5: Number = Field(ge=0)
    fitted_batch: tuple[Amount, Amount] = Field(description="smallest and largest weighted batch")
    fitted_coefficient: tuple[Number, Number] = (0.0, 1.0)
    spread: Fraction = 0.06

    @model_validator(mode="after")
    def _ranges_are_in_order(self) -> Self:
        for name in ("fitted_batch", "fitted_coefficient"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} must be [smallest, largest], got [{low:g}, {high:g}]")
        return self


class CynthiaSection(Section):
    """Cynthia's loss law."""

    law: Literal["cynthia"]
    k0: Number = Field(gt=0)
    k1: Number = Field(ge=0)
    k2: Number = Field(0.0, ge=0, description="steps by which the curve is shifted")
    worker_exponent: Fraction = Field(
        0.5, description="asynchronous: steps to a loss grow with the workers to this power"
    )
    spread: Fraction = 0.06


class NoiseScaleSection(Section):
    """Gradient noise scale: steps to one loss, by batch."""

    law: Literal["noise-scale"]
    minimum_steps: Amount
    noise_scale: Amount = Field(description="in samples")
    loss: Number = Field(description="the loss that these two figures hold for")
    spread: Fraction = 0.10


Convergence = Annotated[
    SpotdnnSection | CynthiaSection | NoiseScaleSection, Field(discriminator="law")
]


class DatasetSection(Section):
    """What one epoch reads."""

    samples: Amount
    size: Bytes | None = None
    tokens_per_sample: Amount | None = None


class InputSection(Section):
    """How fast one node can fetch and prepare samples."""

    prep_per_vcpu: Amount | None = Field(None, description="samples/s each vCPU can prepare")
    cached: Fraction = Field(1.0, description="share of the data set in memory")
    disk: Rate | None = Field(None, description="else the type's block storage")
    memory: Rate = 80_000.0


class LifetimesSection(Section):
    """Measured lifetimes of spot nodes of one type."""

    hours: list[Amount] = Field(min_length=1)
    revoked: list[bool] = Field(min_length=1, description="for each: taken away, or ended by us")

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.hours) != len(self.revoked):
            raise ValueError("give revoked (true or false) for each of the hours")
        return self


class SpotSection(Section):
    """What an interruption costs."""

    checkpoint: Duration | None = Field(None, description="else from the model's size")
    restart: DurationOrZero = 120.0
    common_shock: Fraction = Field(0.5, description="share of the hazard that takes a whole pool")
    lifetimes: dict[str, LifetimesSection] = Field(
        {}, description="measured, by instance type; instead of the interruption advisor"
    )


class WorkloadSection(Section):
    """What is trained."""

    strategy: Strategy
    model: ModelSection
    batch: BatchSection | None = None
    compute: dict[str, ComputeEntry] = Field({}, description="by GPU name or instance type")
    efficiency: Fraction = Field(
        0.35, gt=0, description="of a GPU's peak, where nothing was measured"
    )
    parameter_server: ParameterServerSection | None = None
    allreduce: AllreduceSection | None = None
    serverless: ServerlessSection | None = None
    convergence: Convergence | None = None
    dataset: DatasetSection | None = None
    input: InputSection | None = None
    spot: SpotSection = SpotSection()
    pcie: Rate | None = Field(None, description="per GPU; else the type's")
    interval: IntervalSection | None = None

    @model_validator(mode="after")
    def _has_what_its_strategy_needs(self) -> Self:
        serverless = self.strategy is Strategy.SERVERLESS
        for name in self._sections_without_use():
            raise ValueError(f"strategy {self.strategy} has no use for {name}: remove that section")
        if serverless and self.serverless is None:
            raise ValueError("strategy serverless needs a serverless section")
        if not serverless and self.batch is None:
            raise ValueError(f"strategy {self.strategy} needs a batch section")
        if not serverless and not self.compute and self.model.flops_per_sample is None:
            raise ValueError("give compute for at least one device, or model.flops_per_sample")
        return self

    def _sections_without_use(self) -> list[str]:
        used = {
            "batch": self.strategy is not Strategy.SERVERLESS,
            "parameter_server": self.strategy.uses_parameter_servers,
            "allreduce": self.strategy is Strategy.ALLREDUCE,
            "serverless": self.strategy is Strategy.SERVERLESS,
        }
        return [name for name, use in used.items() if not use and getattr(self, name) is not None]


class GoalSection(Section):
    """What must be reached: exactly one of loss, samples, steps, epochs, tokens."""

    loss: Number | None = Field(None, gt=0)
    samples: Amount | None = None
    steps: Amount | None = None
    epochs: Amount | None = None
    tokens: Amount | None = None
    deadline: Duration | None = None
    budget: Usd | None = None
    confidence: Fraction = Field(
        0.95, gt=0, lt=1, description="probability of meeting the deadline"
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        targets = (self.loss, self.samples, self.steps, self.epochs, self.tokens)
        if sum(target is not None for target in targets) != 1:
            raise ValueError("give exactly one of loss, samples, steps, epochs, tokens")
        return self


class CoolDownSection(Section):
    """A pool that is left out for a while."""

    pool: PoolName
    until: Time


def _form_of_exclusion(entry: Any) -> str:
    return "cool-down" if isinstance(entry, dict) else "pool"


ExcludedPool = Annotated[
    Annotated[PoolName, Tag("pool")] | Annotated[CoolDownSection, Tag("cool-down")],
    Discriminator(_form_of_exclusion),
]


class LimitsSection(Section):
    """What may be rented."""

    cloud: Cloud = Cloud.AWS
    # Left out means all of them; an empty list would mean none, which nobody asks for.
    regions: list[str] = Field([], min_length=1)
    zones: list[str] = Field([], min_length=1, description="zone ids such as use1-az4")
    types: list[str] = Field([], min_length=1)
    gpus: list[str] = Field([], min_length=1)
    markets: list[Market] = Field(list(Market), min_length=1)
    exclude_types: list[str] = []
    exclude_pools: list[ExcludedPool] = Field(
        [], description="for ever, or until a time while a pool cools down"
    )
    pin_pools: dict[PoolName, Count] = Field(
        {},
        description="workers that every fleet has at least, by pool",
        json_schema_extra={"additionalProperties": False},
    )
    parameter_server_types: list[str] = Field([], min_length=1)
    spot_parameter_servers: bool = False
    max_parameter_servers: Count = 4
    max_count: dict[str, Quota] = Field({}, description="nodes, by instance type; 0 for none")
    max_count_per_pool: Count | None = None
    max_vcpus: dict[Market, dict[str, Quota]] = Field(
        {}, description="vCPU quota in each region, by market and AWS quota class"
    )
    max_nodes: Count = 64
    max_pools: Count | None = None
    min_on_demand: Fraction = Field(0.0, description="share of the nodes")
    max_price: dict[str, Usd] = Field({}, description="per node and hour, by instance type")
    max_usd_per_hour: dict[Market, Usd] = Field({}, description="of the whole fleet, by market")
    placement: Placement | None = Field(None, description="all-reduce: one-zone unless given")
    network: NetworkRate = NetworkRate.BASELINE

    @field_validator("exclude_pools")
    @classmethod
    def _each_pool_once(cls, entries: list[ExcludedPool]) -> list[ExcludedPool]:
        pools = [e.pool if isinstance(e, CoolDownSection) else e for e in entries]
        twice = sorted(str(pool) for pool in set(pools) if pools.count(pool) > 1)
        if twice:
            raise ValueError(f"{', '.join(twice)} is given twice: keep one")
        return entries


class JobFile(Section):
    """A Spotwright job: what to train, what to reach, what may be rented."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    workload: WorkloadSection | None = None
    workloads: dict[str, WorkloadSection] = Field(
        {}, description="instead of workload: several, by model, as `calibrate` writes them"
    )
    goal: GoalSection
    limits: LimitsSection = LimitsSection()

    @model_validator(mode="after")
    def _the_goal_can_be_counted(self) -> Self:
        if (self.workload is None) == (not self.workloads):
            raise ValueError("give either workload, or workloads by model")
        for work in self.by_model().values():
            self._check_goal(work)
        return self

    def by_model(self) -> dict[str, WorkloadSection]:
        """Return the workloads by model; a single one goes by the name of the job."""
        return {self.name: self.workload} if self.workload else self.workloads

    def _check_goal(self, work: WorkloadSection) -> None:
        if self.goal.loss is not None and work.convergence is None:
            raise ValueError("goal.loss needs workload.convergence")
        if self.goal.epochs is not None and work.dataset is None:
            raise ValueError("goal.epochs needs workload.dataset.samples")
        tokens = work.dataset.tokens_per_sample if work.dataset else None
        if self.goal.tokens is not None and tokens is None:
            raise ValueError("goal.tokens needs workload.dataset.tokens_per_sample")
