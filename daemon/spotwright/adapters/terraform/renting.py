"""The steps of renting what variables say, the same for people and for the daemon."""

import json
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from spotwright.adapters.terraform.changes import ResourceChange
from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.fleet_folder import FleetFolder, Work
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.domain.errors import BadInputError, TerraformRefusedError
from spotwright.domain.rental import WantedFleet


def stage(
    variables: str, work: Work, folder: FleetFolder, before: WantedFleet | None
) -> WantedFleet:
    """Write what Terraform plans with."""
    work.variables_file.write_text(variables, encoding="utf-8")
    after = read_wanted_fleet(work.variables_file)
    if before is None or not _same_nodes(folder.variables_file, work.variables_file):
        return after
    # The plan in force stays: its name is on every node, and another would change them all.
    shutil.copyfile(folder.variables_file, work.variables_file)
    return read_wanted_fleet(work.variables_file)


def is_made(pool_key: str, addresses: Iterable[str]) -> bool:
    """Tell whether a group of that pool, or an instance (POOL/0), is among addresses."""
    kinds = ("aws_autoscaling_group.", "aws_instance.")
    nodes = (f'["{pool_key}"]', f'["{pool_key}/')
    return any(
        any(kind in address for kind in kinds) and any(node in address for node in nodes)
        for address in addresses
    )


def refuse_foreign_root(
    folder: Path,
    resources: Collection[str],
    after: WantedFleet,
    changes: Iterable[ResourceChange],
) -> None:
    """Raise BadInputError where the folder's configuration does not rent what is planned."""
    made = {*resources, *(change.address for change in changes)}
    ignored = [pool.key for pool in after.pools if not is_made(pool.key, made)]
    if after.functions and not any("aws_lambda_function." in address for address in made):
        ignored.append("functions")
    if ignored:
        raise BadInputError(
            f"the configuration in {folder} makes nothing for {', '.join(ignored)}: it has to call "
            "Spotwright's module with these variables; choose an empty folder with --dir, or see "
            "docs/terraform.md"
        )


def apply_planned(
    terraform: Terraform, folder: FleetFolder, work: Work, *, is_changed: bool
) -> None:
    """Apply the plan; the folder's variables are those of what it has begun to be."""
    put_back = folder.take_variables(work.variables_file.read_text(encoding="utf-8"))
    if not is_changed:
        return
    try:
        terraform.apply(work.plan_file)
    except TerraformRefusedError:
        put_back()
        raise


def _same_nodes(one: Path, other: Path) -> bool:
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    return all(first.get(part) == second.get(part) for part in ("pools", "functions"))
