"""The rates of its links that a worker is counted with, as each strategy chooses them."""

from spotwright.domain.prediction import LinkRates
from spotwright.domain.workload import AllreduceTuning, Links, Strategy, Workload
from spotwright.perfmodel.ring_hardware import ring_hardware
from spotwright.perfmodel.step_model import WorkerClass


def link_rates(workload: Workload, worker: WorkerClass) -> LinkRates:
    """Return what a prediction for this class of workers counts with."""
    instance_type = worker.group.instance_type
    nvlink_mbps = instance_type.nvlink_mbps or None
    pcie_mbps = worker.pcie_mbps if instance_type.gpu_name is not None else None
    if workload.strategy is not Strategy.ALLREDUCE:
        return LinkRates(
            network_mbps=worker.network_mbps, pcie_mbps=pcie_mbps, nvlink_mbps=nvlink_mbps
        )
    tuning = workload.allreduce or AllreduceTuning()
    links, usual = tuning.links.get(instance_type.name, Links()), ring_hardware(worker)
    intra_mbps = links.intra_mbps
    return LinkRates(
        network_mbps=links.network_mbps or usual.network_mbps,
        pcie_mbps=pcie_mbps if nvlink_mbps else intra_mbps or pcie_mbps,
        nvlink_mbps=(intra_mbps or nvlink_mbps) if nvlink_mbps else None,
    )
