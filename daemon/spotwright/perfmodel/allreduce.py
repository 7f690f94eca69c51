"""All-reduce (PyTorch DDP): one ring over G GPUs on N nodes, M bytes of gradients.

    compute  C = max over classes of t_i(batch) * (1 + sharing * (1 - 1/g_i)), the slowest GPU,
             times 1 + gpu_spread * emax(G); g_i GPUs share the host of one node
    sync     S = 2 (G-1)/G * M / B        (ZeRO 3 also gathers parameters: 3 (G-1)/G * M / B)
             one node       B = intra, NVLink or PCIe
             several nodes  B = min(intra, net * exp(-link_spread * emax(N)) / (1 + hop_loss * G)),
                            divided by 1 + two_node_loss on exactly two nodes
    step     T = smooth maximum of C and head * C + S
             buckets known: of C and ready_i * C + S * (share of bucket i and all later ones)

S with hop_loss is 2 (G-1) (M/G + hop_loss M) / net: each of the 2 (G-1) messages of M/G bytes pays
a fixed cost, so the achieved bandwidth falls with the message size. T is the closed form of DDP's
bucket pipeline start_i = max(ready_i, end_(i-1)): exact where the buckets are known, else that of
many small ones that get ready between head * C and C.

Without a calibration, rates and losses are those of ring_hardware.py.
"""

from collections.abc import Sequence

import numpy as np

from spotwright.domain.errors import MissingFactError
from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import AllreduceTuning, Links, Workload
from spotwright.perfmodel.order_statistics import expected_maximum, smooth_maximum
from spotwright.perfmodel.ring_hardware import (
    USUAL_SHARING,
    RingHardware,
    ring_hardware,
    usual_hop_loss,
)
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, WorkerClass, column
from spotwright.perfmodel.synchronous_compute import SynchronousCompute, worst_of

_ZERO3_STAGE = 3
_ROUNDING = 1e-12


class AllreduceModel:
    """Synchronous data-parallel training."""

    def __init__(self, workload: Workload, workers: Sequence[WorkerClass]) -> None:
        """Prepare for fleets of these classes."""
        tuning = workload.allreduce or AllreduceTuning()
        self._tuning = tuning
        self.compute = SynchronousCompute(workload, workers)
        self.gpus = column([w.gpus for w in workers])
        self.input_rate = column([w.input_rate for w in workers])
        links = [tuning.links.get(w.group.instance_type.name, Links()) for w in workers]
        usual = [ring_hardware(w) for w in workers]
        sharing = [_first(link.sharing_fraction, USUAL_SHARING) for link in links]
        self._sharing = column(sharing) * (1 - 1 / self.gpus)
        both = list(zip(links, usual, strict=True))
        self._intra = column([_first(link.intra_mbps, ring.intra_mbps) for link, ring in both])
        self._net = column([_net_mbps(w, k, r) for w, (k, r) in zip(workers, both, strict=True)])
        self._nvlink = [w.group.instance_type.nvlink_mbps > 0 for w in workers]
        spreads = [_first(tuning.link_spread_fraction, ring.link_spread) for ring in usual]
        losses = [_first(tuning.two_node_loss, ring.two_node_loss) for ring in usual]
        self._link_spread, self._two_node_loss = column(spreads), column(losses)
        megabits = workload.model.parameter_bytes * 8e-6 / tuning.compression_ratio
        self._volume = megabits * (3 if workload.memory.zero_stage == _ZERO3_STAGE else 2)
        self._sent = _sent(tuning)
        self._hop_loss = _first(tuning.hop_loss, usual_hop_loss(workload.model.parameter_bytes))

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate fleets."""
        batch = self.compute.batch_per_gpu(counts)
        worst = worst_of(counts, self.keys(batch))
        nodes, gpus = counts.sum(axis=0), self._gpu_count(counts)
        compute_s = self._straggling_s(gpus, worst[0])
        step_s = self.step_s(nodes, gpus, worst)
        return ClusterSpeed(
            iteration_s=step_s,
            step_s=np.broadcast_to(step_s, counts.shape),
            group_samples_per_s=counts * batch * self.gpus / step_s,
            communication_fraction=np.clip(
                (self._overlapped_s(nodes, gpus, compute_s, worst) - compute_s) / step_s, 0.0, 1.0
            ),
        )

    def keys(self, batch_per_gpu: Floats) -> tuple[Floats, ...]:
        """Return, by class, the six quantities of which the worst present decides the step."""
        return (
            self.compute.seconds(batch_per_gpu) * (1 + self._sharing),
            1 / self._net,
            1 / self._intra,
            self._link_spread,
            self._two_node_loss,
            batch_per_gpu * self.gpus / self.input_rate,
        )

    def step_s(self, nodes: Floats, gpus: Floats, worst: Sequence[Floats]) -> Floats:
        """Return the step of fleets of so many nodes and GPUs, from the worst of each key."""
        compute_s = self._straggling_s(gpus, worst[0])
        return np.maximum(self._overlapped_s(nodes, gpus, compute_s, worst), worst[-1])

    @property
    def per_sample_s(self) -> Floats:
        """Seconds per sample of one GPU on a full node of each class, as a column."""
        return self.compute.per_sample_s * (1 + self._sharing)

    def micro_batched_s(self, largest: float) -> Floats:
        """Return the least seconds per sample in micro-batches of a size, as a column."""
        return self.compute.micro_batched_s(largest) * (1 + self._sharing)

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one fleet: what compute does not hide is charged to the link that decides."""
        fleet = counts[:, None]
        batch = self.compute.batch_per_gpu(fleet)
        compute_s = self.compute_s(fleet, batch)
        busy_s = self.overlapped_s(fleet, compute_s)
        exposed_s = float((busy_s - compute_s)[0])
        stall_s = max(0.0, float((self.speed(fleet).iteration_s - busy_s)[0]))
        link = self._deciding_link(fleet)
        shared = {"compute_s": float(compute_s[0]), "input_stall_s": stall_s, link: exposed_s}
        return tuple(StepTerms(**shared) for _ in counts)

    def compute_s(self, counts: Floats, batch_per_gpu: Floats) -> Floats:
        """Return the compute time of the slowest GPU, by fleet."""
        own_s = self.keys(batch_per_gpu)[:1]
        return self._straggling_s(self._gpu_count(counts), worst_of(counts, own_s)[0])

    def overlapped_s(self, counts: Floats, compute_s: Floats) -> Floats:
        """Return the step: compute, with as much of the exchange as sticks out of it."""
        worst = worst_of(counts, self.keys(self.compute.batch_per_gpu(counts)))
        return self._overlapped_s(counts.sum(axis=0), self._gpu_count(counts), compute_s, worst)

    def _straggling_s(self, gpus: Floats, slowest_s: Floats) -> Floats:
        straggling = 1 + self._tuning.gpu_spread_fraction * expected_maximum(np.maximum(gpus, 1.0))
        return np.asarray(slowest_s * straggling)

    def _overlapped_s(
        self, nodes: Floats, gpus: Floats, compute_s: Floats, worst: Sequence[Floats]
    ) -> Floats:
        exchange_s = self._volume * (gpus - 1) / gpus / self._bandwidth_mbps(nodes, gpus, worst)
        ends_s = [ready * compute_s + left * exchange_s for ready, left in self._sent]
        overlapped = smooth_maximum(
            compute_s, np.maximum.reduce(ends_s), self._tuning.overlap_power
        )
        return np.where(gpus > 1, overlapped, compute_s)

    def _bandwidth_mbps(self, nodes: Floats, gpus: Floats, worst: Sequence[Floats]) -> Floats:
        _, per_net, per_intra, link_spread, two_node_loss, _ = worst
        intra = 1 / per_intra
        spread = np.exp(-link_spread * expected_maximum(np.maximum(nodes, 1.0)))
        between = spread / per_net / (1 + self._hop_loss * gpus)
        between = np.where(nodes == 2, between / (1 + two_node_loss), between)
        return np.where(nodes > 1, np.minimum(between, intra), intra)

    def _gpu_count(self, counts: Floats) -> Floats:
        return np.asarray((counts * self.gpus).sum(axis=0))

    def _deciding_link(self, fleet: Floats) -> str:
        worst = worst_of(fleet, self.keys(self.compute.batch_per_gpu(fleet)))
        rate = self._bandwidth_mbps(fleet.sum(axis=0), self._gpu_count(fleet), worst)
        if fleet.sum() > 1 and rate[0] * worst[2][0] < 1 - _ROUNDING:
            return "network_s"
        present = [link for link, count in zip(self._nvlink, fleet[:, 0], strict=True) if count]
        return "nvlink_s" if all(present) else "pcie_s"


def _net_mbps(worker: WorkerClass, links: Links, usual: RingHardware) -> float:
    rate = worker.reached_mbps or links.network_mbps or usual.network_mbps
    if rate is None:
        name = worker.group.instance_type.name
        raise MissingFactError(
            f"the network rate of {name}", way_out=f"add workload.allreduce.links.{name}.network"
        )
    return rate


def _sent(tuning: AllreduceTuning) -> list[tuple[float, float]]:
    """Return when each bucket is ready, and the share of gradients that it and later ones hold."""
    if not tuning.buckets:
        return [(tuning.head_fraction, 1.0)]
    shares = [bucket.bytes_fraction for bucket in tuning.buckets]
    return [(b.ready_fraction, sum(shares[i:])) for i, b in enumerate(tuning.buckets)]


def _first(given: float | None, usual: float) -> float:
    return usual if given is None else given
