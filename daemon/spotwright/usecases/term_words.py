"""What is wrong with a term, in words."""

from collections.abc import Sequence
from dataclasses import replace

from spotwright.domain.live_term import LiveTerm
from spotwright.domain.units import format_duration

_NAMES = {
    "compute": "compute",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "network": "network",
    "ps_service": "PS service",
    "input_stall": "input",
}
_SHOWN_HOSTS = 3
_LEAST_RATE = 0.01  # below it digits say nothing
_LARGEST_RATIO = 100.0  # beyond it a ratio says less than the seconds


def term_text(term: LiveTerm, *, told_s: float, hosts: Sequence[str]) -> LiveTerm:
    """Return a term with its text; `hosts` are named where most of the pool is well."""
    where = f"on {_listed(hosts)}" if hosts else f"on {term.instance_type} pool"
    name = _NAMES[term.term]
    if told_s <= _LARGEST_RATIO * term.planned_s:
        text = f"{name} term {told_s / term.planned_s:.1f}x predicted {where}"
    elif term.planned_s > 0:
        predicted = format_duration(term.planned_s)
        text = f"{name} term {format_duration(told_s)} a step {where}; {predicted} predicted"
    else:
        text = f"{name} term {format_duration(told_s)} a step {where}; none predicted"
    return replace(term, text=text + _rates(term))


def slow_step_text(instance_type: str, measured_s: float, planned_s: float) -> str:
    """Return what is said of steps that are slow for reasons that hosts do not tell."""
    return (
        f"step {measured_s / planned_s:.1f}x predicted on {instance_type} pool; "
        "what its hosts tell does not explain it"
    )


def _listed(hosts: Sequence[str]) -> str:
    shown, more = list(hosts[:_SHOWN_HOSTS]), len(hosts) - _SHOWN_HOSTS
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _rates(term: LiveTerm) -> str:
    if not term.planned_mbps or term.measured_mbps is None:
        return ""
    # As `status` shows them: networks in bits, links to GPUs in bytes.
    unit, mbps = ("Gbit/s", 1e3) if term.term == "network" else ("GB/s", 8e3)
    planned, measured = (_rate(rate / mbps) for rate in (term.planned_mbps, term.measured_mbps))
    return f"; plan assumed {planned} {unit}, measured {measured}"


def _rate(rate: float) -> str:
    return f"{rate:.3g}" if rate >= _LEAST_RATE else f"less than {_LEAST_RATE:g}"
