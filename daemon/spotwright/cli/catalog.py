"""`spotwright catalog`: what can be rented, from the snapshot at hand or from AWS."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.config import read_config
from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, Daemon, TlsDir
from spotwright.cli.sources import Jobs, age_text, read_document, snapshot_store
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.hardware import Cloud, InstanceType
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.domain.units import parse_gib, parse_usd
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.refresh_catalog import refresh_catalog

app = typer.Typer(help="Show instance types and prices, or refresh them.", no_args_is_help=True)


@app.command("list")
def list_offers(
    *,
    job: Annotated[Path | None, typer.Option(help="Only what this job's limits allow.")] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="GPU name, such as T4.")] = None,
    instance_type: Annotated[list[str] | None, typer.Option("--type", help="Type.")] = None,
    region: Annotated[list[str] | None, typer.Option(help="Region, such as us-east-1.")] = None,
    zone: Annotated[list[str] | None, typer.Option(help="Zone id, such as use1-az4.")] = None,
    market: Annotated[Market | None, typer.Option(help="Only one market.")] = None,
    max_price: Annotated[str | None, typer.Option(help="Per instance and hour: $1.50.")] = None,
    min_memory: Annotated[str | None, typer.Option(help="Host memory: 64 GiB.")] = None,
    min_gpu_memory: Annotated[str | None, typer.Option(help="Of one GPU: 24 GiB.")] = None,
    efa: Annotated[bool, typer.Option("--efa", help="Only types with EFA.")] = False,
    servers: Annotated[bool, typer.Option("--cpu", help="Types without a GPU.")] = False,
    retired: Annotated[bool, typer.Option("--retired", help="Also types of the past.")] = False,
    cloud: Annotated[Cloud, typer.Option(help="Whose offers.")] = Cloud.AWS,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """List offers, cheapest first."""
    named = frozenset(instance_type or ())
    query = OfferQuery(
        cloud=cloud,
        gpus=frozenset(gpu or ()),
        instance_types=named,
        regions=frozenset(region or ()),
        zones=frozenset(zone or ()),
        markets=frozenset({market} if market else ()),
        max_price_usd_per_hour=_read(parse_usd, max_price),
        min_memory_gib=_read(parse_gib, min_memory),
        min_gpu_memory_gib=_read(parse_gib, min_gpu_memory),
        efa_only=efa,
        with_gpu=False if servers else (None if named else True),
        include_retired=retired,
    )
    if job is not None:
        _only_job(query)
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        if job is not None:
            opened = Jobs(planner.catalog).open(read_document(job))
            catalog = opened.catalog
            offers = worker_offers(opened.job, catalog, now=datetime.now(UTC))
        else:
            catalog = planner.catalog(cloud)
            offers = catalog.offers(query)
        _print_offers(catalog, offers, as_json=as_json)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Instance type, such as g5.12xlarge.")],
    *,
    cloud: Annotated[Cloud, typer.Option(help="Whose type.")] = Cloud.AWS,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one instance type: its hardware, and where it is offered."""
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        catalog = planner.catalog(cloud)
        instance_type = catalog.instance_type(name)
        offers = catalog.offers(OfferQuery(cloud=cloud, instance_types=frozenset({name})))
        gpu = catalog.gpu(instance_type.gpu_name) if instance_type.gpu_name else None
    if as_json:
        facts = asdict(instance_type) | {"gpu": asdict(gpu) if gpu else None}
        print_json(facts | _offers_json(catalog, offers))
        return
    print_table(("fact", "value"), _facts(instance_type), title=instance_type.name)
    if gpu:
        print_table(("GPU", "value"), _gpu_facts(asdict(gpu)))
    _print_offers(catalog, offers, as_json=False)


@app.command("refresh")
def refresh(
    *,
    region: Annotated[list[str] | None, typer.Option(help="Only these; else all known.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read current types, prices and quotas from AWS and keep them for later commands."""
    with needs_extra("aws", "catalog refresh"):
        from spotwright.adapters.aws.feed import AwsPriceFeed  # noqa: PLC0415
    store = snapshot_store(Cloud.AWS, read_config())
    last = store.load()
    regions = region or sorted({price.region for price in last.prices})
    note(f"asking AWS about {', '.join(regions)} ...")
    feed = AwsPriceFeed(clock=lambda: datetime.now(UTC), warn=note)
    try:
        report = refresh_catalog(feed, store, regions=regions)
    except OutsideWorldError as error:
        kept = f"the last good snapshot of {last.catalog_time:%Y-%m-%d} stays in use"
        raise OutsideWorldError(f"{error}; {kept} ({age_text(last.catalog_time)})") from error
    if as_json:
        print_json({key: _plain(value) for key, value in asdict(report).items()})
        return
    before = report.previous_time
    since = f" since {before:%Y-%m-%d %H:%M} UTC" if before else ""
    print(
        f"{report.price_count} prices, {report.changed_price_count} of them new or changed{since}; "
        f"{report.quota_count} vCPU quotas; oldest prices on sale {age_text(report.catalog_time)}"
    )


def _read(parse: Callable[[str], float], text: str | None) -> float | None:
    return None if text is None else parse(text)


def _only_job(query: OfferQuery) -> None:
    if query != OfferQuery(with_gpu=True):
        raise BadInputError("--job takes its filters from the job's limits: drop the others")


def _print_offers(catalog: OfferSource, offers: Sequence[Offer], *, as_json: bool) -> None:
    if as_json:
        print_json(_offers_json(catalog, offers))
        return
    columns = ("type", "GPU", "GPU GiB>", "vCPU>", "GiB>", "Gbit/s>", "PCIe GB/s>", "EFA>",
               "zone", "market", "$/h>", "interrupted/month>")  # fmt: skip
    print_table(columns, [_offer_row(offer) for offer in offers])
    if not offers:
        note("no offers match; --retired also lists types that are no longer sold")
        return
    oldest = catalog.oldest_price_time(offers)
    note(f"{len(offers)} offers; prices of {oldest:%Y-%m-%d} or later, oldest {age_text(oldest)}")


def _offer_row(offer: Offer) -> tuple[str, ...]:
    t = offer.instance_type
    gpus = f"{t.gpu_count:g} x {t.gpu_name}" if t.gpu_name else "-"
    interrupted = offer.interruption_fraction
    return (
        t.name + (" (retired)" if t.retired else ""),
        gpus,
        f"{t.gpu_memory_gib:.3g}" if t.gpu_name else "-",
        f"{t.vcpu_count:g}",
        f"{t.memory_gib:g}",
        _network(t),
        f"{t.pcie_mbps / 8000:.1f}" if t.pcie_mbps else "-",
        str(t.efa_interface_count or "-"),
        offer.zone,
        offer.market,
        f"{offer.price_usd_per_hour:.4f}",
        f"{interrupted:.1%}" if interrupted is not None else "-",
    )


def _network(t: InstanceType) -> str:
    if t.network_baseline_mbps is None:
        return "?"
    peak = t.network_peak_mbps or t.network_baseline_mbps
    burst = f" (to {peak / 1000:g})" if peak > t.network_baseline_mbps else ""
    return f"{t.network_baseline_mbps / 1000:g}{burst}"


def _offer_json(offer: Offer) -> dict[str, Any]:
    t = offer.instance_type
    return {
        "instance_type": t.name,
        "gpu_name": t.gpu_name,
        "gpu_count": t.gpu_count,
        "gpu_memory_gib": t.gpu_memory_gib,
        "vcpu_count": t.vcpu_count,
        "memory_gib": t.memory_gib,
        "network_baseline_mbps": t.network_baseline_mbps,
        "network_peak_mbps": t.network_peak_mbps,
        "efa_interface_count": t.efa_interface_count,
        "pcie_mbps": t.pcie_mbps,
        "nvlink_mbps": t.nvlink_mbps,
        "quota_class": t.quota_class,
        "retired": t.retired,
        "region": offer.region,
        "zone": offer.zone,
        "market": offer.market,
        "price_usd_per_hour": offer.price_usd_per_hour,
        "interruption_fraction": offer.interruption_fraction,
    }


def _offers_json(catalog: OfferSource, offers: Sequence[Offer]) -> dict[str, Any]:
    return {
        "offers": [_offer_json(offer) for offer in offers],
        "catalog_time": catalog.oldest_price_time(offers).isoformat(),  # of these offers only
    }


def _facts(t: InstanceType) -> list[tuple[str, str]]:
    return [(key.replace("_", " "), _shown(value)) for key, value in asdict(t).items()][1:]


def _gpu_facts(gpu: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key.replace("_", " "), _shown(value)) for key, value in gpu.items()]


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    return f"{value:,g}" if isinstance(value, float) and value >= 1 else str(value)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
