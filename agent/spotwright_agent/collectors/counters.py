"""Rates of counters that only grow, but for wraps and resets."""

_WIDTHS = (32, 40, 48, 56, 64)  # bits of counters that are met in drivers and hardware
MEGABIT = 1e6
_FASTEST_BYTES_PER_S = 2e12  # all NVLinks of the fastest GPU; nothing on a host is faster


class CounterRate:
    """How fast a counter grows between two reads.

    A counter that went back has wrapped or was reset. It has wrapped if the step over the end of
    its width is less than half of the width and not faster than anything can be; the width is the
    smallest that the older count fits in. After a reset the interval has no rate.
    """

    def __init__(self, *, fastest_per_s: float = _FASTEST_BYTES_PER_S) -> None:
        self._fastest_per_s = fastest_per_s
        self._count = -1  # before the first read
        self._time_s = 0.0

    def update(self, count: int, *, now_s: float) -> float | None:
        """Return the mean rate per second since the call before; None: not known."""
        before, passed_s = self._count, now_s - self._time_s
        self._count, self._time_s = count, now_s
        if before < 0 or count < 0 or not passed_s > 0:  # not so for NaN, too
            return None
        if count >= before:
            return (count - before) / passed_s
        return self._wrapped_rate(before, count, passed_s)

    def _wrapped_rate(self, before: int, count: int, passed_s: float) -> float | None:
        for bits in _WIDTHS:
            size = 1 << bits
            if before < size:
                step = count + size - before
                likely = step < size // 2 and step <= self._fastest_per_s * passed_s
                return step / passed_s if likely else None
        return None


def mbps(bytes_per_s: float | None) -> float | None:
    """Return a rate in 10^6 bit/s."""
    return None if bytes_per_s is None else bytes_per_s * 8 / MEGABIT


class ByteRates:
    """The summed rate of many counters that come and go, as those of interfaces do.

    A counter that is new or was reset adds nothing to this interval; the others count.
    """

    def __init__(self) -> None:
        self._rates: dict[str, CounterRate] = {}

    def update_mbps(self, counts: dict[str, int], *, now_s: float) -> float | None:
        """Return the sum in 10^6 bit/s; None where no counter has a rate yet."""
        if self._rates.keys() - counts.keys():
            self._rates = {name: self._rates[name] for name in self._rates if name in counts}
        found = [
            rate
            for name, count in counts.items()
            if (rate := self._of(name).update(count, now_s=now_s)) is not None
        ]
        return mbps(sum(found)) if found else None

    def _of(self, name: str) -> CounterRate:
        known = self._rates.get(name)
        if known is None:
            known = self._rates[name] = CounterRate()
        return known
