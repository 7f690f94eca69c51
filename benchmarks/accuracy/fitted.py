"""What the all-reduce model fits to each network, for judging whether the values are physical."""

from collections.abc import Sequence

from benchmarks.accuracy.allreduce_runs import TYPE, AllreduceRun
from benchmarks.accuracy.product import Product


def fitted_values(product: Product, runs: Sequence[AllreduceRun]) -> dict[str, float]:
    """Fit all runs of one network and return the values in the units of a job file."""
    (job,) = product.calibrate([run.cells for run in runs]).values()
    (compute,), tuning = job.workload.compute.values(), job.workload.allreduce
    assert tuning is not None
    links = tuning.links[TYPE]
    values = {
        "fixed_s": compute.fixed_s,
        "per_sample_s": compute.per_sample_s,
        "knee": compute.knee,
        "sharing_fraction": links.sharing_fraction,
        "intra_mbps": links.intra_mbps,
        "network_mbps": links.network_mbps,
        "gpu_spread_fraction": tuning.gpu_spread_fraction,
        "hop_loss": tuning.hop_loss,
        "two_node_loss": tuning.two_node_loss,
        "head_fraction": tuning.head_fraction,
        "overlap_power": tuning.overlap_power,
    }
    return {name: value for name, value in values.items() if value is not None}
