"""Gradients inside one node before they leave it: over PCIe, or NVLink where there is one.

spotDNN's term: 2 * g * S / B_pcie for g GPUs. With NVLink the GPUs reduce among themselves first,
2 (g-1)/g * S / B_nvlink, and one copy crosses PCIe.
"""

from spotwright.perfmodel.step_model import WorkerClass


def pcie_s(worker: WorkerClass, parameter_bytes: float) -> float:
    """Return the seconds of PCIe transfers in one step of one node."""
    if worker.group.instance_type.gpu_name is None:
        return 0.0
    copies = 1.0 if _has_nvlink(worker) else worker.gpus
    return 2 * copies * parameter_bytes * 8e-6 / worker.pcie_mbps


def nvlink_s(worker: WorkerClass, parameter_bytes: float) -> float:
    """Return the seconds of NVLink transfers in one step of one node."""
    if not _has_nvlink(worker):
        return 0.0
    share = (worker.gpus - 1) / worker.gpus
    return 2 * share * parameter_bytes * 8e-6 / worker.group.instance_type.nvlink_mbps


def _has_nvlink(worker: WorkerClass) -> bool:
    return worker.gpus > 1 and worker.group.instance_type.nvlink_mbps > 0
