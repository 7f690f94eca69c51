"""One host's step, term by term.

    exposed_s     = min(communication_s, step_s - busy_s), busy_s = compute_s + data_wait_s:
                    what compute hides costs nothing
    exchange_s    = exposed_s, without the time spent waiting for slower workers:
                    synchronous   exposed_s - (slowest busy_s of the fleet - own busy_s)
                    asynchronous  exposed_s
    input_stall_s = data_wait_s,   compute_s = compute_s

All-reduce has one link that decides, and the exchange is its term. With parameter servers it is

    network_s     = (tx + min(rx, tx)) / attainable_mbps          gradients out, parameters back
    pcie_s        = tx / largest tx rate + min(rx, tx) / largest rx rate, of one GPU
    nvlink_s      = the same over NVLink
    ps_service_s  = exchange_s - network_s - pcie_s - nvlink_s    what is left

What comes in beyond what goes out is taken for training data. attainable_mbps is what a probe
found. Without one it is the largest rate in one sample, which is the link's own rate only where the
transfer fills whole samples: where it takes two or more. Otherwise the term cannot be told, and
neither can ps_service_s without network_s. PCIe and NVLink that cannot be told count as planned
in what is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spotwright.domain.planned_run import PlannedPool
from spotwright.domain.workload import Strategy
from spotwright.usecases.host_steps import HostSteps, Traffic

EXCHANGES = ("pcie", "nvlink", "network", "ps_service")
_WHOLE_SAMPLES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTerms:
    """Seconds of each term that can be told, and rates of links where they are known."""

    host: HostSteps
    seconds: Mapping[str, float]
    mbps: Mapping[str, float] = field(default_factory=dict)
    exchange_s: float | None = None


def host_terms(
    host: HostSteps, pool: PlannedPool, *, strategy: Strategy, slowest_busy_s: float | None
) -> HostTerms:
    """Return where one host's step goes.

    Args:
        host: what it tells.
        pool: what was planned for hosts of its type.
        strategy: how workers exchange what they learn.
        slowest_busy_s: of the whole fleet, where everybody waits for the slowest; else None.
    """
    seconds = {"step": host.step_s}
    if host.compute_s is not None:
        seconds["compute"] = host.compute_s
    if host.data_wait_s is not None:
        seconds["input_stall"] = host.data_wait_s
    exchange_s = _exchange_s(host, slowest_busy_s)
    if strategy is Strategy.ALLREDUCE:
        link = deciding_link(pool)
        mbps = _ring_mbps(host, pool, link, exchange_s)
        if exchange_s is not None:
            seconds[link] = exchange_s
        return HostTerms(host=host, seconds=seconds, mbps=mbps, exchange_s=exchange_s)
    served, mbps = _served(host, pool, exchange_s)
    return HostTerms(host=host, seconds=seconds | served, mbps=mbps, exchange_s=exchange_s)


def deciding_link(pool: PlannedPool) -> str:
    """Return the link that a ring of this pool is planned to wait for."""
    planned = pool.terms.by_name()
    longest = max(("network", "nvlink", "pcie"), key=lambda link: planned[link])
    if planned[longest] > 0:
        return longest
    if pool.node_count > 1:
        return "network"
    return "nvlink" if pool.rates.nvlink_mbps else "pcie"


def _exchange_s(host: HostSteps, slowest_busy_s: float | None) -> float | None:
    if host.communication_s is None:
        return None
    if host.busy_s is None:
        return host.communication_s
    exposed_s = min(host.communication_s, host.step_s - host.busy_s)
    wait_s = 0.0 if slowest_busy_s is None else slowest_busy_s - host.busy_s
    return max(0.0, exposed_s - wait_s)


def _ring_mbps(
    host: HostSteps, pool: PlannedPool, link: str, exchange_s: float | None
) -> dict[str, float]:
    """Return the rate of the link that decides.

    Bits of a step over its exchange are more than the true rate where compute hides some of it; so
    they are only told where even that is less than planned.
    """
    traffic: Traffic | None = getattr(host, link)
    known = host.probe_mbps if link == "network" else None
    if known is None and traffic is not None:
        known = _resolved_mbps(traffic, host.sample_s)
    if known is None and traffic is not None and exchange_s:
        planned_mbps = getattr(pool.rates, f"{link}_mbps")
        most_mbps = traffic.tx_megabits / exchange_s
        known = most_mbps if planned_mbps and 0 < most_mbps < planned_mbps else None
    return {} if known is None else {link: known}


def _served(
    host: HostSteps, pool: PlannedPool, exchange_s: float | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Split an exchange with parameter servers."""
    mbps = _link_mbps(host)
    if exchange_s is None:
        return {}, mbps
    seconds: dict[str, float] = {}
    left_s = exchange_s
    for link in ("network", "pcie", "nvlink"):
        traffic: Traffic | None = getattr(host, link)
        if traffic is not None and link in mbps:
            both_ways = traffic.tx_megabits + min(traffic.rx_megabits, traffic.tx_megabits)
            seconds[link] = min(left_s, both_ways / mbps[link])
            left_s -= seconds[link]
        elif link != "network":
            left_s -= pool.terms.by_name()[link]
    if "network" in seconds:
        seconds["ps_service"] = max(0.0, left_s)
    return seconds, mbps


def _link_mbps(host: HostSteps) -> dict[str, float]:
    found = {"network": host.probe_mbps} if host.probe_mbps else {}
    for link in ("network", "pcie", "nvlink"):
        traffic: Traffic | None = getattr(host, link)
        resolved = None if traffic is None else _resolved_mbps(traffic, host.sample_s)
        if resolved is not None:
            found.setdefault(link, resolved)
    return found


def _resolved_mbps(traffic: Traffic, sample_s: float) -> float | None:
    """Return the rate while a link is in use, where samples are short enough to show it."""
    largest = traffic.tx_largest_mbps
    if largest <= 0 or traffic.tx_megabits / largest < _WHOLE_SAMPLES * sample_s:
        return None
    return largest
