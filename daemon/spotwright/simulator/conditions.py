"""What a simulated run meets beside the market."""

from dataclasses import dataclass
from enum import StrEnum


class Squeeze(StrEnum):
    """How a pool that runs short cuts nodes down instead of taking them."""

    PROPORTIONAL = "proportional"  # all alike
    PRIORITY = "priority"  # those that came first keep more
    DETERMINISTIC = "deterministic"  # one after another down to the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How nodes start, are taken, and what a checkpoint and a move cost."""

    notice_s: float = 120.0  # before a node is taken; 0: none
    start_s: tuple[float, ...] = ()  # measured, one is drawn for each node; none: the job's restart
    checkpoint_every_s: float | None = None  # None: by Young and Daly
    saves_on_notice: bool = True
    is_probed: bool = True  # the controller knows at once which pools give nothing
    checkpoint_gb: float = 0.0  # moved with a job that goes to another zone
    move_usd_per_gb: float = 0.0
    speed_factor: float = 1.0  # of all nodes, over what is predicted
    squeeze: Squeeze | None = None  # None: nodes are taken
    floor_fraction: float = 0.25  # of its speed, below which a node that is cut down is taken
    horizon_factor: float = 1.5  # times the deadline; a run that takes longer is ended

    def __post_init__(self) -> None:
        if self.notice_s < 0 or any(s < 0 for s in self.start_s) or self.speed_factor <= 0:
            raise ValueError(f"times must not be negative, speed_factor positive, got {self}")
        if not 0 < self.floor_fraction <= 1:
            raise ValueError(f"floor_fraction must be in (0, 1], got {self.floor_fraction}")
