"""What a fleet does of which some nodes have become less than their type promises.

    compute   compute_s * compute_factor, and input as much slower: both need the CPU
    network   the rate that is reached by now, in place of the type's

A shrunk node is a class of its own beside its equals, so that the strategy's model says the rest:
rates of asynchronous workers add up, of synchronous ones the slowest sets the pace.
"""

from collections.abc import Sequence
from dataclasses import replace

from spotwright.domain.shrunk import Shrinkage
from spotwright.perfmodel.step_model import WorkerClass


def shrunk_class(worker: WorkerClass, shrinkage: Shrinkage) -> WorkerClass:
    """Return the class of a node that is less than its equals."""
    factor, compute = shrinkage.compute_factor, worker.compute
    return replace(
        worker,
        group=replace(worker.group, node_count=1),
        compute=replace(
            compute,
            fixed_s=compute.fixed_s * factor,
            per_sample_s=compute.per_sample_s * factor,
        ),
        input_rate=worker.input_rate / factor,
        network_mbps=shrinkage.network_mbps or worker.network_mbps,
        reached_mbps=shrinkage.network_mbps,
    )


def with_shrunk(
    workers: Sequence[WorkerClass],
    counts: Sequence[float],
    shrunk: Sequence[tuple[int, Shrinkage]],
) -> tuple[list[WorkerClass], list[float]]:
    """Return classes and counts of a fleet in which single nodes have shrunk.

    Args:
        workers: the classes as they were planned.
        counts: whole and shrunk nodes of each.
        shrunk: of each shrunk node its class, by number, and what is left of it.
    """
    classes, numbers = list(workers), list(counts)
    for place, shrinkage in shrunk:
        if numbers[place] < 1:
            raise ValueError(f"more nodes of class {place} have shrunk than there are")
        numbers[place] -= 1
        classes.append(shrunk_class(workers[place], shrinkage))
        numbers.append(1.0)
    return classes, numbers
