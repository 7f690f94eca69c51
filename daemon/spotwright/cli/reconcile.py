"""`spotwright reconcile`: what a fleet's file asks for beside what AWS runs and bills."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, FleetDir, TerraformProgram
from spotwright.cli.sources import age_text, open_catalog
from spotwright.cli.terminal import print_json
from spotwright.domain.hardware import Cloud
from spotwright.usecases.reconcile_fleet import FolderState, reconcile_fleet
from spotwright.usecases.rent_prices import RentPrices, rent_prices


def reconcile(
    *,
    folder: FleetDir = Path("fleet"),
    catalog_file: CatalogFile = None,
    program: TerraformProgram = None,
    no_drift: Annotated[
        bool, typer.Option("--no-drift", help="Do not ask Terraform what it would change.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the fleet that a folder asks for with what AWS grants and bills.

    Tells missing, surplus and stray nodes, spot nodes billed on-demand, wrong types and zones,
    counts that somebody changed, prices above the ceiling, and what Terraform would change.
    Nothing is changed. Exit code 0: all is as wanted; 1: something differs, or could not be told.

    \b
    spotwright reconcile --dir fleet
    spotwright reconcile --no-drift --json
    """
    with needs_extra("aws", "reconcile"):
        from spotwright.adapters.aws.rented_fleets import AwsRentedFleets  # noqa: PLC0415
        from spotwright.adapters.terraform.fleet_folder import FleetFolder  # noqa: PLC0415
        from spotwright.adapters.terraform.read_variables import read_wanted_fleet  # noqa: PLC0415
        from spotwright.cli.fleet_drift import NOT_ASKED, fleet_drift  # noqa: PLC0415
        from spotwright.cli.reconcile_view import (  # noqa: PLC0415
            Comparison,
            comparison_json,
            print_comparison,
        )
    wanted = read_wanted_fleet(FleetFolder(folder).variables_file)
    catalog = open_catalog(Cloud.AWS, file=catalog_file)
    rented = AwsRentedFleets(wanted.region, clock=lambda: datetime.now(UTC))
    granted = rented.granted(wanted.name)
    prices = rent_prices(wanted, granted, rented=rented, catalog=catalog)
    drift = NOT_ASKED if no_drift else fleet_drift(folder, program=program)
    held_ids, is_cut_off = drift.held_ids, FleetFolder(folder).is_cut_off
    state = None if held_ids is None else FolderState(held_ids=held_ids, is_cut_off=is_cut_off)
    comparison = Comparison(
        reconciliation=reconcile_fleet(wanted, granted, prices=prices.usd_per_hour, state=state),
        drift=drift.changes,
        drift_problem=drift.problem,
        notes=_price_notes(prices),
    )
    if as_json:
        print_json(comparison_json(comparison))
    else:
        print_comparison(comparison)
    if not comparison.as_wanted:
        raise typer.Exit(1)


def _price_notes(prices: RentPrices) -> list[str]:
    observed = prices.catalog_time
    if observed is None:
        return []
    return [
        f"on-demand prices are the catalog's of {observed:%Y-%m-%d} ({age_text(observed)}); "
        "spot prices are those of now"
    ]
