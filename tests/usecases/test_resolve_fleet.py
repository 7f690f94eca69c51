"""Fleets written by hand, against a search through the whole price list of the bundled catalog."""

from collections.abc import Iterable

import pytest

from spotwright.domain.catalog import ZonePrice
from spotwright.domain.errors import BadInputError, FleetExpressionError
from spotwright.domain.fleet import Fleet, FunctionGroup, Role
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Market
from spotwright.domain.workload import Strategy
from spotwright.usecases.resolve_fleet import resolve_fleet
from tests.usecases.example_job import catalog, job, snapshot

US_EAST_1 = frozenset({"us-east-1"})


def resolved(text: str, asked: JobSpec | None = None) -> Fleet:
    return resolve_fleet(text, asked or job(), catalog())


def price(row: ZonePrice, market: str) -> float:
    found = row.spot_usd_per_hour if market == "spot" else row.on_demand_usd_per_hour
    return float("inf") if found is None else found


def rows(type_name: str, regions: Iterable[str] = ()) -> list[ZonePrice]:
    return [
        row
        for row in snapshot().prices
        if row.instance_type == type_name and (not regions or row.region in regions)
    ]


@pytest.mark.parametrize("market", ["spot", "on-demand"])
@pytest.mark.parametrize("regions", [(), ("us-east-1",), ("eu-west-1", "us-west-2")])
@pytest.mark.parametrize("name", ["g4dn.xlarge", "g5.48xlarge", "p3.2xlarge", "p4d.24xlarge"])
def test_the_zone_is_the_cheapest_that_the_job_allows(
    name: str, regions: tuple[str, ...], market: str
) -> None:
    cheapest = min(price(row, market) for row in rows(name, regions))

    (group,) = resolved(f"{name}/{market}", job(regions=frozenset(regions))).nodes

    assert group.offer is not None
    assert group.offer.price_usd_per_hour == cheapest
    assert not regions or group.offer.region in regions


@pytest.mark.parametrize(
    "terms",
    [
        {"g4dn.xlarge": 1, "g5.xlarge": 1},
        {"g4dn.xlarge": 20, "g5.xlarge": 1},
        {"g4dn.xlarge": 1, "g6.xlarge": 5, "m5.xlarge": 3},
        {"p4d.24xlarge": 2, "g5.12xlarge": 4},
    ],
)
@pytest.mark.parametrize("placement", [Placement.ONE_ZONE, Placement.ONE_REGION])
def test_a_fleet_kept_together_stands_in_the_place_that_is_cheapest_for_the_whole(
    terms: dict[str, int], placement: Placement
) -> None:
    place = (lambda row: row.zone) if placement is Placement.ONE_ZONE else (lambda row: row.region)
    totals = [
        sum(
            count * min((price(row, "spot") for row in rows(name) if place(row) == where),
                        default=float("inf"))
            for name, count in terms.items()
        )
        for where in {place(row) for row in snapshot().prices}
    ]  # fmt: skip

    text = " + ".join(f"{name}*{count}/spot" for name, count in terms.items())
    fleet = resolved(text, job(placement=placement))

    assert fleet.usd_per_hour == pytest.approx(min(totals))
    offers = [group.offer for group in fleet.nodes if group.offer]
    assert len({o.zone if placement is Placement.ONE_ZONE else o.region for o in offers}) == 1


def test_a_fleet_that_may_stand_anywhere_takes_each_term_where_it_is_cheapest() -> None:
    apart = sum(min(price(row, "spot") for row in rows(n)) for n in ("g4dn.xlarge", "g5.xlarge"))

    fleet = resolved("g4dn.xlarge/spot + g5.xlarge/spot", job(placement=Placement.ANYWHERE))

    assert fleet.usd_per_hour == pytest.approx(apart)


def test_what_is_left_out_is_one_node_with_all_its_gpus_on_demand() -> None:
    (group,) = resolved("g4dn.12xlarge").nodes

    assert (group.role, group.node_count, group.gpus_per_node) == (Role.WORKER, 1, 4)
    assert group.market is Market.ON_DEMAND


def test_what_is_written_is_taken() -> None:
    elsewhere = job(regions=frozenset({"eu-west-1"}))

    (group,) = resolved("g4dn.12xlarge:2*3@use1-az6/spot", elsewhere).nodes

    assert (group.node_count, group.gpus_per_node) == (3, 2)
    assert group.offer is not None
    assert str(group.offer.pool) == "g4dn.12xlarge@use1-az6/spot"


@pytest.mark.parametrize(
    ("text", "gpus_per_host", "used"), [("T4", 1, 1), ("T4:2", 4, 2), ("V100:5", 8, 5)]
)
def test_a_gpu_name_takes_the_cheapest_of_the_smallest_hosts_that_hold_it(
    text: str, gpus_per_host: int, used: int
) -> None:
    hosts = [
        host.name
        for host in snapshot().instance_types.values()
        if host.gpu_name == text.split(":", maxsplit=1)[0] and host.gpu_count == gpus_per_host
    ]
    cheapest = min(price(row, "spot") for host in hosts for row in rows(host))

    (group,) = resolved(f"{text}/spot").nodes

    assert group.instance_type.gpu_count == gpus_per_host
    assert group.gpus_per_node == used
    assert group.usd_per_hour == cheapest


def test_a_gpu_that_nobody_rents_out_becomes_a_host_without_a_price() -> None:
    fleet = resolved("P100:2*3 + T4")
    bare, rented = fleet.nodes

    assert (bare.device, bare.node_count, bare.gpus_per_node) == ("P100", 3, 2)
    assert bare.offer is None
    assert rented.offer is not None
    assert fleet.usd_per_hour is None


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_the_jobs_own_parameter_servers_are_added(strategy: Strategy) -> None:
    (server,) = resolved("T4*4", job(strategy)).servers

    assert (server.instance_type.name, server.node_count) == ("m5.xlarge", 2)


def test_parameter_servers_in_the_fleet_replace_the_jobs_own() -> None:
    (server,) = resolved("T4*4 + ps=c5n.4xlarge", job(Strategy.ASP_PS)).servers

    assert (server.instance_type.name, server.node_count) == ("c5n.4xlarge", 1)


def test_functions_come_with_the_jobs_parameter_servers() -> None:
    fleet = resolved("lambda:2560*8", job(Strategy.SERVERLESS))

    assert fleet.functions == FunctionGroup(memory_mb=2560, function_count=8)
    assert [group.role for group in fleet.nodes] == [Role.PS]


@pytest.mark.parametrize(
    ("strategy", "text", "complaint"),
    [
        (Strategy.ALLREDUCE, "T4 + ps=m5.xlarge", "allreduce has no parameter servers"),
        (Strategy.ALLREDUCE, "lambda:128", "need strategy serverless, the job says allreduce"),
        (Strategy.ASP_PS, "ps=m5.xlarge", "at least one worker"),
        (Strategy.ASP_PS, "T4 + lambda:128", "need strategy serverless, the job says asp-ps"),
        (Strategy.SERVERLESS, "T4", "lambda:MB*COUNT"),
        (Strategy.SERVERLESS, "lambda:128 + T4", "lambda:MB*COUNT"),
        (Strategy.SERVERLESS, "lambda:128 + lambda:256", "write one lambda term"),
    ],
)
def test_a_fleet_that_does_not_suit_the_strategy_is_refused(
    strategy: Strategy, text: str, complaint: str
) -> None:
    with pytest.raises(BadInputError, match=complaint.replace("*", r"\*")):
        resolved(text, job(strategy))


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("T4 + g5.xlrge", 6, "did you mean 'g5.xlarge'?"),
        ("T4 + T44", 6, "did you mean 'T4'?"),
        ("T4@use1-az9", 1, "unknown zone 'use1-az9'"),
        ("T4 + g5.xlarge:2", 6, "g5.xlarge has 1 GPUs, not 2"),
        ("T4 + m5.xlarge:1", 6, "m5.xlarge has 0 GPUs, not 1"),
        ("T4 + T4@usw2-lax1-az1", 6, "is not offered"),
        ("T4 + p4de.24xlarge/spott", 20, "unknown market"),
    ],
)
def test_a_term_that_cannot_be_had_is_pointed_at(text: str, column: int, problem: str) -> None:
    with pytest.raises(FleetExpressionError) as caught:
        resolved(text, job(regions=US_EAST_1))

    assert caught.value.column == column
    assert problem in caught.value.problem


def test_terms_offered_in_no_common_zone_are_refused_with_a_way_out() -> None:
    with pytest.raises(BadInputError, match=r"no single zone has all of .* limits\.placement"):
        resolved("T4@use1-az1 + T4@use1-az2", job(placement=Placement.ONE_ZONE))


def test_an_unusable_parameter_server_of_the_job_is_not_blamed_on_the_fleet() -> None:
    asked = job(Strategy.ASP_PS, zones=frozenset({"usw2-lax1-az1"}))

    with pytest.raises(BadInputError, match="the job's parameter server cannot be used") as caught:
        resolved("g4dn.xlarge/spot", asked)

    assert not isinstance(caught.value, FleetExpressionError)
    assert "set workload.parameter_server.type" in str(caught.value)


def test_a_job_for_another_cloud_is_refused() -> None:
    with pytest.raises(BadInputError, match="gcp"):
        resolved("T4", job(cloud=Cloud.GCP))


@pytest.mark.parametrize("text", ["g4dn.xlarge*1000000", "g4dn.xlarge*4000 + g5.xlarge*97"])
def test_a_fleet_of_more_nodes_than_anyone_rents_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="fleets of up to 4,096"):
        resolved(text)


def test_terms_that_cost_the_same_everywhere_are_put_in_one_zone() -> None:
    together = resolved("g4dn.4xlarge*2 + g3.16xlarge", job(Strategy.ASP_PS))

    zones = {group.offer.zone for group in together.nodes if group.offer}
    assert len(zones) == 1
