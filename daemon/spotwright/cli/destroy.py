"""`spotwright destroy`: give up everything that a fleet folder rents."""

from pathlib import Path

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, AutoApprove, CatalogFile, FleetDir, TerraformProgram
from spotwright.domain.errors import BadInputError


def destroy(
    *,
    folder: FleetDir = Path("fleet"),
    auto_approve: AutoApprove = False,
    program: TerraformProgram = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a fleet folder rents, ask, and give all of it up.

    The folder stays, without its variables: `spotwright apply` rents from it again.

    \b
    spotwright destroy --dir fleet
    """
    if as_json and not auto_approve:
        raise BadInputError("--json asks nobody: it goes with --auto-approve")
    with needs_extra("aws", "destroy"):
        from spotwright.cli.destroying import destroy_fleet  # noqa: PLC0415
    destroy_fleet(
        folder,
        program=program,
        catalog_file=catalog_file,
        auto_approve=auto_approve,
        as_json=as_json,
    )
