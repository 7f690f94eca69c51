"""Queries against an oracle that walks the price list in plain Python."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market, OfferQuery

GPUS = ("T4", "A10G", "K80")
ZONE_REGIONS = {"a-az1": "a", "a-az2": "a", "b-az1": "b"}
TIME = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = st.none() | st.sampled_from([0.1, 0.2, 0.2000001, 1.5, 30.0])
SIZES = st.sampled_from([1.0, 16.0, 22.352, 64.0])


@st.composite
def instance_types(draw: st.DrawFn, name: str) -> InstanceType:
    gpu = draw(st.none() | st.sampled_from(GPUS))
    return InstanceType(
        name=name,
        cloud=Cloud.AWS,
        vcpu_count=draw(SIZES),
        memory_gib=draw(SIZES),
        gpu_name=gpu,
        gpu_count=draw(st.sampled_from([0.125, 1.0, 8.0])) if gpu else 0.0,
        gpu_memory_gib=draw(SIZES) if gpu else 0.0,
        efa_interface_count=draw(st.integers(0, 2)),
        retired=draw(st.booleans()),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    names = [f"t{i}.large" for i in range(draw(st.integers(1, 5)))]
    prices = [
        ZonePrice(name, region, zone, draw(PRICES), draw(PRICES))
        for name in names
        for zone, region in ZONE_REGIONS.items()
    ]
    # One type per GPU keeps every GPU name known, whatever was drawn for the others.
    sure = {f"sure-{gpu}": _plain(f"sure-{gpu}", gpu) for gpu in GPUS}
    return Snapshot(
        cloud=Cloud.AWS,
        price_times=dict.fromkeys(ZONE_REGIONS.values(), TIME),
        retired_price_times=dict.fromkeys(names, TIME),
        sources={},
        gpus={gpu: _gpu(gpu) for gpu in GPUS},
        instance_types={name: draw(instance_types(name)) for name in names} | sure,
        prices=tuple(draw(st.permutations(prices))),
        interruption_fraction={("a", names[0]): 0.075},
    )


def _gpu(name: str) -> Gpu:
    return Gpu(
        name=name,
        architecture="any",
        memory_gib=16.0,
        memory_mbps=None,
        fp32_flops=None,
        fp16_flops=None,
        bf16_flops=None,
    )


def _plain(name: str, gpu: str) -> InstanceType:
    return InstanceType(
        name=name, cloud=Cloud.AWS, vcpu_count=1.0, memory_gib=1.0, gpu_name=gpu, gpu_count=1.0
    )


def _subsets(names: list[str]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(names), max_size=3)


@st.composite
def queries(draw: st.DrawFn, snapshot: Snapshot) -> OfferQuery:
    return OfferQuery(
        gpus=draw(_subsets(list(GPUS))),
        instance_types=draw(_subsets(sorted(snapshot.instance_types))),
        regions=draw(_subsets(["a", "b"])),
        zones=draw(_subsets(list(ZONE_REGIONS))),
        markets=draw(st.frozensets(st.sampled_from(Market))),
        max_price_usd_per_hour=draw(PRICES),
        min_memory_gib=draw(st.none() | SIZES),
        min_gpu_memory_gib=draw(st.none() | SIZES),
        min_gpu_count=draw(st.none() | SIZES),
        efa_only=draw(st.booleans()),
        with_gpu=draw(st.none() | st.booleans()),
        include_retired=draw(st.booleans()),
    )


def _admits(query: OfferQuery, kind: InstanceType) -> bool:
    return (
        (not query.instance_types or kind.name in query.instance_types)
        and (not query.gpus or kind.gpu_name in query.gpus)
        and (query.with_gpu is None or query.with_gpu == (kind.gpu_name is not None))
        and (query.min_memory_gib is None or kind.memory_gib >= query.min_memory_gib)
        and (query.min_gpu_memory_gib is None or kind.gpu_memory_gib >= query.min_gpu_memory_gib)
        and (query.min_gpu_count is None or kind.gpu_count >= query.min_gpu_count)
        and (not query.efa_only or kind.efa_interface_count > 0)
        and (not kind.retired or query.include_retired or kind.name in query.instance_types)
    )


def by_walking_the_list(
    snapshot: Snapshot, query: OfferQuery
) -> list[tuple[float, str, str, str, float | None]]:
    found = []
    for row in snapshot.prices:
        in_place = (not query.regions or row.region in query.regions) and (
            not query.zones or row.zone in query.zones
        )
        if not in_place or not _admits(query, snapshot.instance_types[row.instance_type]):
            continue
        fraction = snapshot.interruption_fraction.get((row.region, row.instance_type))
        for market, price, risk in (
            (Market.ON_DEMAND, row.on_demand_usd_per_hour, None),
            (Market.SPOT, row.spot_usd_per_hour, fraction),
        ):
            dear = query.max_price_usd_per_hour is not None and (
                price is not None and price > query.max_price_usd_per_hour
            )
            if price is not None and not dear and (not query.markets or market in query.markets):
                found.append((price, row.instance_type, row.zone, str(market), risk))
    return sorted(found, key=lambda offer: offer[:4])


@given(st.data(), snapshots())
def test_a_query_finds_what_walking_the_price_list_finds(
    data: st.DataObject, snapshot: Snapshot
) -> None:
    query = data.draw(queries(snapshot))

    found = Catalog(snapshot).offers(query)

    assert [
        (
            offer.price_usd_per_hour,
            offer.instance_type.name,
            offer.zone,
            str(offer.market),
            offer.interruption_fraction,
        )
        for offer in found
    ] == by_walking_the_list(snapshot, query)
    assert all(offer.region == ZONE_REGIONS[offer.zone] for offer in found)
