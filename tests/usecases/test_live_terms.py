"""Terms are recovered from steps that a simulator played, and the slow one is named."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from spotwright.domain.live_term import LiveTerm
from spotwright.domain.planned_run import PlannedPool, PlannedRun
from spotwright.domain.prediction import LinkRates, StepTerms
from spotwright.domain.workload import Strategy
from spotwright.usecases.host_steps import host_steps
from spotwright.usecases.live_terms import Found, live_terms
from tests.usecases.example_job_run import after, planned_run
from tests.usecases.step_simulator import PlayedHost, play

TYPE = "g4dn.12xlarge"
RATES = LinkRates(network_mbps=25_000.0, pcie_mbps=64_000.0)
# Long enough for samples of a second to show what each link does.
SERVED = StepTerms(compute_s=3.0, pcie_s=4.4, network_s=5.0, ps_service_s=1.0, input_stall_s=0.4)
RING = StepTerms(compute_s=0.30, network_s=0.15, input_stall_s=0.02)
ONE_NODE = StepTerms(compute_s=0.30, pcie_s=0.15)


def planned(terms: StepTerms, strategy: Strategy, *, node_count: int = 8) -> PlannedRun:
    pool = PlannedPool(
        instance_type=TYPE,
        node_count=node_count,
        step_s=terms.total_s,
        terms=terms,
        rates=RATES,
    )
    return replace(planned_run(), strategy=strategy, pools=(pool,))


def found(
    plan: PlannedRun,
    hosts: Sequence[PlayedHost],
    *,
    length_s: int = 600,
    known: Sequence[Found] = (),
    end: datetime | None = None,
) -> dict[str, LiveTerm]:
    in_step = plan.strategy is not Strategy.ASP_PS
    played = play(hosts, in_step=in_step, length_s=length_s)
    end = end or after(length_s)
    steps = [host_steps(host.agent, played[host.name], resolution_s=10, end=end) for host in hosts]
    terms = live_terms(plan, [each for each in steps if each is not None], known=known)
    return {term.term: term for term in terms}


def fleet(terms: StepTerms, *, count: int = 4, **facts: Any) -> list[PlayedHost]:
    return [PlayedHost(name=f"gpu-{i}", terms=terms, **facts) for i in range(count)]


def bottlenecks(terms: dict[str, LiveTerm]) -> list[str]:
    return [name for name, term in terms.items() if term.is_bottleneck]


def assert_recovered(terms: dict[str, LiveTerm], true: StepTerms) -> None:
    for name, seconds in true.by_name().items():
        if name in terms and terms[name].measured_s is not None:
            assert terms[name].measured_s == pytest.approx(seconds, rel=0.1, abs=0.02), name


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
@pytest.mark.parametrize("slow", ["compute", "pcie", "network", "ps_service", "input_stall"])
def test_the_slow_term_of_workers_with_servers_is_named_and_measured(
    slow: str, strategy: Strategy, noise: float
) -> None:
    factor = {"ps_service": 4.0, "input_stall": 8.0}.get(slow, 1.6)
    true = replace(SERVED, **{f"{slow}_s": factor * SERVED.by_name()[slow]})
    rates: dict[str, Any] = {
        "network_mbps": 25_000.0 / (factor if slow == "network" else 1),
        "pcie_mbps": 64_000.0 / (factor if slow == "pcie" else 1),
    }

    terms = found(planned(SERVED, strategy), fleet(true, noise=noise, **rates))

    assert bottlenecks(terms) == [slow]
    if noise == 0.0:
        assert set(true.by_name()) - terms.keys() == {"nvlink"}
        assert_recovered(terms, true)


@pytest.mark.parametrize("slow", ["compute", "network", "input_stall"])
def test_the_slow_term_of_a_ring_is_named_and_measured(slow: str) -> None:
    factor = 10.0 if slow == "input_stall" else 1.6
    true = replace(RING, **{f"{slow}_s": factor * RING.by_name()[slow]})

    terms = found(planned(RING, Strategy.ALLREDUCE), fleet(true, noise=0.03))

    assert bottlenecks(terms) == [slow]
    assert_recovered(terms, true)


def test_a_ring_inside_one_node_waits_for_its_pcie() -> None:
    true = replace(ONE_NODE, pcie_s=0.30)
    plan = planned(ONE_NODE, Strategy.ALLREDUCE, node_count=1)

    terms = found(plan, fleet(true, count=1, pcie_mbps=32_000.0))

    assert bottlenecks(terms) == ["pcie"]
    assert terms["pcie"].text.startswith(f"PCIe term 2.0x predicted on {TYPE} pool")
    assert terms["step"].measured_s == pytest.approx(0.60, rel=0.02)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    ("terms", "strategy"),
    [(SERVED, Strategy.ASP_PS), (SERVED, Strategy.BSP_PS), (RING, Strategy.ALLREDUCE)],
)
def test_nothing_is_found_where_all_is_as_planned(
    terms: StepTerms, strategy: Strategy, noise: float
) -> None:
    live = found(planned(terms, strategy), fleet(terms, noise=noise))

    assert bottlenecks(live) == []
    assert [term.text for term in live.values() if term.text] == []


def test_the_sentence_has_the_ratio_the_pool_and_both_rates() -> None:
    true = replace(RING, network_s=0.24)

    terms = found(planned(RING, Strategy.ALLREDUCE), fleet(true, probe_mbps=9_800.0))

    assert terms["network"].text == (
        "network term 1.6x predicted on g4dn.12xlarge pool; plan assumed 25 Gbit/s, measured 9.8"
    )
    assert (terms["network"].planned_mbps, terms["network"].measured_mbps) == (25_000.0, 9_800.0)


@pytest.mark.parametrize("peer", ["localhost", "127.0.0.3:7444", "[::1]:7444", "::1", "10.0.0.2"])
@pytest.mark.parametrize("age_s", [3_500, 3_700])
def test_a_probe_that_is_old_or_of_the_host_itself_tells_no_rate(peer: str, age_s: int) -> None:
    hosts = fleet(RING, probe_mbps=9_800.0, probe_peer=peer)

    terms = found(planned(RING, Strategy.ALLREDUCE), hosts, end=after(age_s))

    tells = peer == "10.0.0.2" and age_s < 3_600
    assert (terms["network"].measured_mbps == 9_800.0) is tells


@pytest.mark.parametrize("strategy", [Strategy.ALLREDUCE, Strategy.BSP_PS, Strategy.ASP_PS])
def test_an_exchange_that_compute_hides_is_no_bottleneck(strategy: Strategy) -> None:
    usual = RING if strategy is Strategy.ALLREDUCE else SERVED
    hidden_s = 0.8 * usual.compute_s
    longer = replace(usual, network_s=usual.network_s + hidden_s)
    hosts = fleet(longer, hidden_s=hidden_s, probe_mbps=25_000.0)

    terms = found(planned(usual, strategy), hosts)

    assert bottlenecks(terms) == []
    assert terms["step"].measured_s == pytest.approx(usual.total_s, rel=0.02)
    if strategy is Strategy.ALLREDUCE:
        assert_recovered(terms, usual)


@pytest.mark.parametrize(
    ("true", "slow"),
    [
        (replace(RING, compute_s=0.6, network_s=0.4), "compute"),
        (replace(RING, network_s=0.7), "network"),
    ],
)
def test_the_slow_term_of_a_ring_that_overlaps_is_named(true: StepTerms, slow: str) -> None:
    hosts = fleet(true, hidden_s=0.25)

    terms = found(planned(RING, Strategy.ALLREDUCE), hosts)

    assert bottlenecks(terms) == [slow]
    assert_recovered(terms, replace(true, network_s=true.network_s - 0.25))


def test_a_term_that_another_makes_up_for_is_no_bottleneck() -> None:
    true = replace(RING, compute_s=0.40, network_s=0.05)

    terms = found(planned(RING, Strategy.ALLREDUCE), fleet(true))

    assert terms["compute"].measured_s == pytest.approx(0.40, rel=0.02)
    assert bottlenecks(terms) == []


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE])
@pytest.mark.parametrize(("slow", "factor"), [("compute", 1.7), ("input_stall", 12.0)])
def test_one_slow_host_of_eight_is_named(slow: str, factor: float, strategy: Strategy) -> None:
    usual = RING if strategy is Strategy.ALLREDUCE else SERVED
    hosts = fleet(usual, count=8)
    hosts[3] = replace(hosts[3], terms=replace(usual, **{f"{slow}_s": factor * 0.3}))
    if usual is SERVED:
        hosts[3] = replace(
            hosts[3], terms=replace(usual, **{f"{slow}_s": factor * usual.by_name()[slow]})
        )

    terms = found(planned(usual, strategy), hosts)

    assert bottlenecks(terms) == [slow]
    assert "on gpu-3" in terms[slow].text
    assert "pool" not in terms[slow].text


def test_without_a_split_only_the_step_is_told() -> None:
    untold = frozenset({"data_wait_s", "compute_s", "communication_s"})
    true = replace(RING, network_s=0.45)

    terms = found(planned(RING, Strategy.ALLREDUCE), fleet(true, untold=untold))

    assert {name for name, term in terms.items() if term.measured_s is not None} == {"step"}
    assert bottlenecks(terms) == []
    assert "what its hosts tell does not explain it" in terms["step"].text


def test_short_steps_without_a_probe_do_not_tell_the_network_from_the_servers() -> None:
    short = StepTerms(compute_s=0.2, pcie_s=0.02, network_s=0.2, ps_service_s=0.05)
    true = replace(short, ps_service_s=0.4)
    plan = planned(short, Strategy.ASP_PS)

    without = found(plan, fleet(true), length_s=120)
    probed = found(plan, fleet(true, probe_mbps=25_000.0), length_s=120)

    assert without["network"].measured_s is without["ps_service"].measured_s is None
    assert bottlenecks(without) == []
    assert bottlenecks(probed) == ["ps_service"]
    assert probed["ps_service"].measured_s == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("untold", ["compute_s", "data_wait_s", "communication_s"])
def test_the_part_that_training_does_not_tell_is_the_rest_of_the_step(untold: str) -> None:
    true = replace(RING, network_s=0.3)

    terms = found(planned(RING, Strategy.ALLREDUCE), fleet(true, untold=frozenset({untold})))

    assert bottlenecks(terms) == ["network"]
    assert_recovered(terms, true)


def test_hosts_without_counters_still_tell_compute_and_input() -> None:
    untold = frozenset({f"{k}_{d}_mbps" for k in ("network", "pcie") for d in ("rx", "tx")})

    terms = found(planned(SERVED, Strategy.ASP_PS), fleet(SERVED, untold=untold))

    told = {name for name, term in terms.items() if term.measured_s is not None}
    assert told == {"step", "compute", "input_stall"}


@pytest.mark.parametrize("length_s", [10, 50])
def test_a_bottleneck_needs_a_minute_of_steps(length_s: int) -> None:
    true, plan = replace(RING, compute_s=0.6), planned(RING, Strategy.ALLREDUCE)

    assert bottlenecks(found(plan, fleet(true), length_s=length_s)) == []
    assert bottlenecks(found(plan, fleet(true), length_s=70)) == ["compute"]


def test_a_bottleneck_ends_later_than_it_begins() -> None:
    between, plan = replace(RING, compute_s=0.35), planned(RING, Strategy.ALLREDUCE)
    ended = replace(RING, compute_s=0.31)
    known = [(TYPE, "compute")]

    assert bottlenecks(found(plan, fleet(between))) == []
    assert bottlenecks(found(plan, fleet(between), known=known)) == ["compute"]
    assert bottlenecks(found(plan, fleet(ended), known=known)) == []


def test_hosts_of_other_types_and_functions_have_no_terms() -> None:
    strangers = fleet(RING, instance_type="p3.2xlarge")
    plan = planned(RING, Strategy.ALLREDUCE)

    assert all(term.measured_s is None for term in found(plan, strangers).values())
    assert found(replace(plan, strategy=Strategy.SERVERLESS), fleet(RING)) == {}
