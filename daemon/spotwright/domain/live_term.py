"""Parts of a step as planned and as they are now."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTerm:
    """One part of a step in one pool of workers; None where it cannot be told."""

    instance_type: str
    term: str  # step, or a name of StepTerms
    planned_s: float
    measured_s: float | None = None
    planned_mbps: float | None = None  # counted with; None: a term without a rate
    measured_mbps: float | None = None
    is_bottleneck: bool = False  # explains why steps are slower than planned
    text: str = ""  # the same in words; empty where nothing is wrong
