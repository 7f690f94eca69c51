"""Find the term that makes steps slower than planned: a pure function of what hosts tell.

Each host's step is split into terms (host_terms.py). A pool is one instance type. Where everybody
waits for the slowest worker, compute_s and input_stall_s of a pool are those of its slowest host;
else, and for exchanges, they are means over hosts. A term is a bottleneck where

    measured_s >= 1.25 * planned_s
    excess_s   >= 10 % of the step,   excess_s = measured_s - planned_s

with at least 20 steps in at least a minute. What one term has too much and another too little is no
excess: excess_s is at most that of the whole step. The exchange is measured as a whole, and its
terms are told apart by bytes and rates: their excess_s is at most that of the whole exchange, too.
Found once, it stays one until measured_s < 1.1 * planned_s or excess_s < 5 % of the step.

Where most hosts of a pool are well and some are not, those are named.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from spotwright.domain.live_term import LiveTerm
from spotwright.domain.planned_run import PlannedPool, PlannedRun
from spotwright.domain.workload import Strategy
from spotwright.usecases.host_steps import HostSteps
from spotwright.usecases.host_terms import EXCHANGES, HostTerms, host_terms
from spotwright.usecases.term_words import slow_step_text, term_text

Found = tuple[str, str]  # instance type and term of a bottleneck

_LEAST_STEPS, _LEAST_S = 20, 60.0
_OWN = ("compute", "input_stall")


class _Limits(NamedTuple):
    ratio: float
    share: float  # of the step


_NEW, _KNOWN = _Limits(1.25, 0.10), _Limits(1.10, 0.05)


def live_terms(
    planned: PlannedRun, hosts: Sequence[HostSteps], *, known: Collection[Found] = ()
) -> tuple[LiveTerm, ...]:
    """Compare the terms of each pool with the plan's.

    Args:
        planned: the plan that runs.
        hosts: those of the job that make steps.
        known: bottlenecks that were found before; they end later than they begin.
    """
    if planned.strategy in (None, Strategy.SERVERLESS):
        return ()
    types = {pool.instance_type for pool in planned.pools}
    slowest_s = _slowest_busy_s(planned.strategy, [h for h in hosts if h.instance_type in types])
    found: list[LiveTerm] = []
    for pool in planned.pools:
        mine = [
            host_terms(host, pool, strategy=planned.strategy, slowest_busy_s=slowest_s)
            for host in hosts
            if host.instance_type == pool.instance_type
        ]
        found += _Pool(pool=pool, hosts=mine, strategy=planned.strategy).terms(known)
    return tuple(found)


def _slowest_busy_s(strategy: Strategy, hosts: Sequence[HostSteps]) -> float | None:
    if strategy is Strategy.ASP_PS:
        return None
    return max((host.busy_s for host in hosts if host.busy_s is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    pool: PlannedPool
    hosts: Sequence[HostTerms]
    strategy: Strategy

    def terms(self, known: Collection[Found]) -> list[LiveTerm]:
        """Return the whole step, then each term that was planned or measured."""
        found = [
            self._term(name, known)
            for name in self.pool.terms.by_name()
            if self._planned_s(name) > 0 or self._measured_s(name) is not None
        ]
        return [self._step(found), *found]

    def _step(self, terms: Sequence[LiveTerm]) -> LiveTerm:
        planned_s, measured_s = self.pool.step_s, self._measured_s("step")
        slow = measured_s is not None and planned_s > 0 and measured_s >= _NEW.ratio * planned_s
        text = ""
        if slow and self._confirmed(self.hosts) and not any(t.is_bottleneck for t in terms):
            text = slow_step_text(self.pool.instance_type, measured_s or 0.0, planned_s)
        return LiveTerm(
            instance_type=self.pool.instance_type,
            term="step",
            planned_s=planned_s,
            measured_s=measured_s,
            text=text,
        )

    def _term(self, name: str, known: Collection[Found]) -> LiveTerm:
        limits = _KNOWN if (self.pool.instance_type, name) in known else _NEW
        measured_s, slow = self._measured_s(name), self._slow_hosts(name, limits)
        found = self._pool_is_slow(name, limits) or bool(slow)
        named = slow if 2 * len(slow) <= len(self._telling(name)) and len(self.hosts) > 1 else []
        told_s = max((host.seconds[name] for host in named), default=measured_s or 0.0)
        rates = [host.mbps[name] for host in named or self.hosts if name in host.mbps]
        term = LiveTerm(
            instance_type=self.pool.instance_type,
            term=name,
            planned_s=self._planned_s(name),
            measured_s=measured_s,
            planned_mbps=getattr(self.pool.rates, f"{name}_mbps", None),
            measured_mbps=self._pool_mbps(rates),
            is_bottleneck=found,
        )
        if not found:
            return term
        return term_text(term, told_s=told_s, hosts=[host.host.agent_id for host in named])

    def _pool_is_slow(self, name: str, limits: _Limits) -> bool:
        measured_s, step_s = self._measured_s(name), self._measured_s("step")
        if measured_s is None or step_s is None or not self._confirmed(self.hosts):
            return False
        exchanges = [h.exchange_s for h in self.hosts if h.exchange_s is not None]
        whole_s = fmean(exchanges) if exchanges else None
        return self._exceeds(name, measured_s, whole_s, step_s, limits)

    def _slow_hosts(self, name: str, limits: _Limits) -> list[HostTerms]:
        """Return the hosts whose own figure is a bottleneck; an exchange in step is everybody's."""
        if self.strategy is not Strategy.ASP_PS and name in EXCHANGES:
            return []
        return [
            host
            for host in self._telling(name)
            if self._confirmed([host])
            and self._exceeds(
                name, host.seconds[name], host.exchange_s, host.seconds["step"], limits
            )
        ]

    def _exceeds(
        self, name: str, measured_s: float, exchange_s: float | None, step_s: float, limits: _Limits
    ) -> bool:
        planned_s = self._planned_s(name)
        excess_s = min(measured_s - planned_s, step_s - self.pool.step_s)
        if name in EXCHANGES and exchange_s is not None:
            excess_s = min(excess_s, exchange_s - sum(self._planned_s(each) for each in EXCHANGES))
        return measured_s >= limits.ratio * planned_s and excess_s >= limits.share * step_s

    def _measured_s(self, name: str) -> float | None:
        telling = self._telling(name)
        if not telling:
            return None
        if self.strategy is not Strategy.ASP_PS and name in _OWN:
            slowest = max(telling, key=lambda host: host.host.busy_s or host.seconds[name])
            return slowest.seconds[name]
        return fmean(host.seconds[name] for host in telling)

    def _pool_mbps(self, rates: Sequence[float]) -> float | None:
        """Return the rate of a pool: in step the slowest link decides."""
        if not rates:
            return None
        return median(rates) if self.strategy is Strategy.ASP_PS else min(rates)

    def _planned_s(self, name: str) -> float:
        return self.pool.terms.by_name()[name]

    def _telling(self, name: str) -> list[HostTerms]:
        return [host for host in self.hosts if name in host.seconds]

    def _confirmed(self, hosts: Sequence[HostTerms]) -> bool:
        return (
            sum(host.host.step_count for host in hosts) >= _LEAST_STEPS
            and max((host.host.covered_s for host in hosts), default=0.0) >= _LEAST_S
        )
