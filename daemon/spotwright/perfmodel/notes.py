"""What a reader should know beside the figures: risks, and facts that had to be assumed."""

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market
from spotwright.domain.units import format_duration, format_usd
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.interruption import (
    UNKNOWN_INTERRUPTION_FRACTION,
    SpotRisk,
    checkpoint_s,
)

_LARGEST_MEASURED_CHECKPOINT_BYTES = 0.5e9  # of the runs behind the checkpoint law


def prediction_notes(
    job: JobSpec, fleet: Fleet, risk: SpotRisk, traffic_usd: float
) -> tuple[str, ...]:
    """Return the notes of a prediction, most important first."""
    notes = [*_interruptions(job, risk), *_assumed(job, fleet)]
    if traffic_usd > 0:
        notes.append(f"{format_usd(traffic_usd)} of the cost is traffic between zones")
    zones = {g.offer.zone for g in fleet.workers if g.offer}
    if job.workload.strategy is Strategy.ALLREDUCE and len(zones) > 1:
        notes.append("a ring over several zones: its longer latency is not in the step")
    unpriced = sorted({g.instance_type.name for g in fleet.nodes if g.offer is None})
    if unpriced:
        notes.append(f"no price for {', '.join(unpriced)}: the cost is not known")
    return tuple(notes)


def _interruptions(job: JobSpec, risk: SpotRisk) -> list[str]:
    if risk.events_per_hour == 0:
        return []
    saving = risk.checkpoint_interval_s
    every = f", a checkpoint every {format_duration(saving)}" if saving else ""
    notes = [f"{risk.expected_events:.2g} interruptions expected{every}"]
    large = job.workload.model.parameter_bytes > _LARGEST_MEASURED_CHECKPOINT_BYTES
    if saving and large and job.workload.spot.checkpoint_s is None:
        notes.append(
            f"{format_duration(checkpoint_s(job.workload))} per checkpoint is extrapolated from "
            "smaller models: state workload.spot.checkpoint"
        )
    return notes


def _assumed(job: JobSpec, fleet: Fleet) -> list[str]:
    """Name the facts that the catalog lacks and the model assumed."""
    spot = [g for g in fleet.nodes if g.market is Market.SPOT and g.offer]
    unknown = {
        g.instance_type.name
        for g in spot
        if g.offer
        and g.offer.interruption_fraction is None
        and g.instance_type.name not in job.workload.spot.lifetimes
    }
    share = f"{UNKNOWN_INTERRUPTION_FRACTION:.0%}"
    facts = [(f"interrupted nodes per month assumed as {share}", unknown)]
    if job.workload.strategy.uses_parameter_servers:
        no_pcie = {g.instance_type.name for g in fleet.workers if not g.instance_type.pcie_mbps}
        no_network = {
            g.instance_type.name
            for g in fleet.workers
            if g.instance_type.network_baseline_mbps is None
        }
        if job.workload.pcie_mbps is None:
            facts.append(("PCIe assumed as generation 3 x16", no_pcie))
        facts.append(("network assumed no slower than the servers'", no_network))
    return [f"{fact} for {', '.join(sorted(names))}" for fact, names in facts if names]
