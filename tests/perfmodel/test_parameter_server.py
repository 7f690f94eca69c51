"""What 100 MB in 10 tensors ask of servers with 8 Gbit/s and four vCPUs, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import BadInputError, MissingFactError
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import Contention, ParameterServing, Strategy, Workload
from spotwright.perfmodel.parameter_server import ServerDemand, server_demand
from spotwright.perfmodel.strategies import build_model
from tests.perfmodel.example_clusters import (
    classes,
    fleet_of,
    host,
    job,
    model,
    nodes,
    offered,
    server,
    step_s,
    workload,
)

CPU_S = 10 * 0.108e-3 + 0.126  # 10 tensors, 100 MB
counts = st.tuples(*[st.integers(0, 12)] * 3).filter(any)


def work(contention: Contention = Contention.QUEUEING, **serving: Any) -> Workload:
    return workload(
        Strategy.ASP_PS, parameter_serving=ParameterServing(contention=contention, **serving)
    )


def demand(count: int = 1, *, vcpus: float = 4, **serving: Any) -> ServerDemand:
    return server_demand(work(**serving), [server(count, vcpu_count=vcpus)], NetworkRate.BASELINE)


@pytest.mark.parametrize(
    ("vcpus", "demand_s", "visit_s"),
    [(2, 2 * CPU_S, 2 * CPU_S), (4, CPU_S, 2 * CPU_S), (16, CPU_S / 4, 2 * CPU_S)],
)
def test_more_vcpus_serve_more_workers_but_none_of_them_faster(
    vcpus: float, demand_s: float, visit_s: float
) -> None:
    found = demand(vcpus=vcpus)

    assert (found.cpu_demand_s, found.cpu_visit_s) == pytest.approx((demand_s, visit_s))


@pytest.mark.parametrize(("worker_mbps", "seconds"), [(None, 0.1), (80_000, 0.1), (1_000, 0.8)])
def test_the_slower_end_of_the_link_sets_the_transfer(
    worker_mbps: float | None, seconds: float
) -> None:
    assert demand().link_visit_s(worker_mbps) == pytest.approx(seconds)
    assert demand().link_demand_s == pytest.approx(0.1)


def test_a_balanced_pair_of_servers_halves_the_work_of_each() -> None:
    one, two = demand(1), demand(2, largest_shard_fraction=0.5)

    assert two.link_demand_s == pytest.approx(one.link_demand_s / 2)
    assert two.cpu_demand_s == pytest.approx(one.cpu_demand_s / 2)


def test_a_lone_workers_stations_take_no_longer_than_its_communication() -> None:
    for vcpus in (2, 4, 16, 64):
        found = demand(vcpus=vcpus)
        for mbps in (None, 500, 8_000):
            visits = sum(station.visit_s for station in found.stations(mbps))
            talk_s = 2 * found.link_visit_s(mbps) + found.unhidden_service_s(mbps)
            assert visits <= talk_s * (1 + 1e-12)


def test_a_server_whose_network_nobody_knows_is_a_missing_fact() -> None:
    unknown = [server(network_baseline_mbps=None)]

    with pytest.raises(
        MissingFactError, match=r"m.server.*add workload.parameter_server.bandwidth"
    ):
        step_s(work(), [nodes(host())], unknown)


def test_a_job_with_servers_is_refused_without_any() -> None:
    workers = classes(work(), [nodes(host())])

    with pytest.raises(BadInputError, match="strategy asp-ps needs a parameter server"):
        build_model(job(work()), workers, [], most_workers=1)


@pytest.mark.parametrize("contention", [Contention.QUEUEING, Contention.NONE])
def test_a_worker_alone_takes_the_sum_of_its_parts(contention: Contention) -> None:
    talk_s = max(2 * 0.1, 2 * CPU_S)  # both ways over the link, or the CPU if that takes longer

    found = step_s(work(contention), [nodes(host())])

    assert found == pytest.approx(0.2 + 2 * 800 / 80_000 + talk_s)


def test_a_far_server_costs_an_asynchronous_worker_round_trips() -> None:
    near, server_here = offered(host(), 1), offered(host("m.server", None, vcpu_count=4))
    assert server_here.offer is not None
    far = replace(server_here, offer=replace(server_here.offer, zone="z9", region="r9"))

    apart = step_s(work(), [near], [far]) - step_s(work(), [near], [server_here])

    assert apart == pytest.approx(2.4 * 0.07)


def test_the_share_of_communication_weighs_workers_by_their_steps() -> None:
    slow, fast = host("g.slow", network_baseline_mbps=400), host()
    mixed = model(work(Contention.NONE), [nodes(slow), nodes(fast)])
    talk_s, local_s = (2 * 2.0, 2 * CPU_S), 0.2 + 2 * 800 / 80_000  # 100 MB at 400 Mbit/s: 2 s
    steps = [2 / (local_s + talk_s[0]), 3 / (local_s + talk_s[1])]
    shares = [talk / (local_s + talk) for talk in talk_s]

    found = mixed.speed(fleet_of(2, 3)).communication_fraction[0]

    assert found == pytest.approx(np.average(shares, weights=steps))


def test_without_contention_speeds_add_up() -> None:
    free = model(work(Contention.NONE), [nodes(host())])

    one, many = (float(free.speed(fleet_of(n)).iteration_s[0]) for n in (1, 40))

    assert many == pytest.approx(one / 40)


def test_with_contention_the_busiest_station_is_the_limit() -> None:
    crowded = model(work(), [nodes(host())])

    speed = 1 / float(crowded.speed(fleet_of(60)).iteration_s[0])

    assert speed == pytest.approx(1 / CPU_S, rel=0.01)
    assert crowded.terms(fleet_of(60)[:, 0])[0].bottleneck == "ps_service"


def test_nvlink_reduces_inside_the_node_before_one_copy_crosses_pcie() -> None:
    for nvlink, pcie_s, nvlink_s in (
        (0.0, 8 * 800 / 80_000, 0.0),
        (1e6, 1600 / 80_000, 1200 / 1e6),
    ):
        box = nodes(host(gpu_count=4.0, nvlink_mbps=nvlink))
        (terms,) = model(work(), [box]).terms(fleet_of(1)[:, 0])
        assert (terms.pcie_s, terms.nvlink_s) == pytest.approx((pcie_s, nvlink_s))


@given(fleet=counts, contention=st.sampled_from([Contention.QUEUEING, Contention.NONE]))
def test_classes_that_are_not_in_the_fleet_change_nothing(
    fleet: tuple[int, int, int], contention: Contention
) -> None:
    links = [host(f"g.{mbps}", network_baseline_mbps=mbps) for mbps in (500, 2_000, 20_000)]
    all_three = model(work(contention), [nodes(link) for link in links])
    present = [(link, n) for link, n in zip(links, fleet, strict=True) if n]
    only = model(work(contention), [nodes(link) for link, _ in present])

    whole = all_three.speed(fleet_of(*fleet)).iteration_s[0]

    assert whole == pytest.approx(only.speed(fleet_of(*(n for _, n in present))).iteration_s[0])
