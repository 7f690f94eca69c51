"""Which clock stamped a batch, so that its times can be put right although that clock jumped.

    offset    = wall clock - time since the kernel booted, when the batch was begun
    send_time = time since boot now + offset    the same kernel still runs
              = wall clock now                  it does not, and nothing better is known

The daemon takes send_time less its own clock for the error of all times in a batch. A wall clock
that is set while batches wait would spoil that; the time since boot is never set.
"""

import time
import uuid
from pathlib import Path
from typing import NamedTuple, Protocol

FIRST_UNIX_MS, LAST_UNIX_MS = 946_684_800_000, 4_102_444_800_000  # what the daemon takes
_JUMP_MS = 1_000
_KERNEL_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """The host's clocks."""

    kernel_boot: str  # changes whenever the time since boot starts anew

    def wall_ms(self) -> int:
        """Return milliseconds since 1970 UTC, as far as the host knows."""

    def boot_ms(self) -> int:
        """Return milliseconds since the kernel booted, sleep included."""


class HostClock:
    """The clocks of this host."""

    def __init__(self) -> None:
        try:
            self.kernel_boot = _KERNEL_BOOT.read_text(encoding="ascii").strip()
        except OSError:  # then no later process takes this one's stamps for its own kernel's
            self.kernel_boot = uuid.uuid4().hex

    def wall_ms(self) -> int:
        """Return milliseconds since 1970 UTC, as far as the host knows."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Return milliseconds since the kernel booted, sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class ClockStamp(NamedTuple):
    """How the wall clock stood to the time since boot."""

    offset_ms: int
    kernel_boot: str

    @classmethod
    def of(cls, clock: Clock) -> "ClockStamp":
        """Return how the clocks stand now."""
        return cls(clock.wall_ms() - clock.boot_ms(), clock.kernel_boot)

    def is_near(self, other: "ClockStamp") -> bool:
        """Tell whether the wall clock was not set in between."""
        near = abs(self.offset_ms - other.offset_ms) <= _JUMP_MS
        return near and self.kernel_boot == other.kernel_boot

    def now_ms(self, clock: Clock) -> int:
        """Return the time now by the clock that was stamped; one that the daemon takes."""
        same = self.kernel_boot == clock.kernel_boot
        now_ms = clock.boot_ms() + self.offset_ms if same else clock.wall_ms()
        return min(max(now_ms, FIRST_UNIX_MS), LAST_UNIX_MS)
