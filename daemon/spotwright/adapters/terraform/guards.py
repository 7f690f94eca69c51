"""What `apply` refuses to do, so that no node runs that nobody knows."""

from collections.abc import Collection, Iterable
from pathlib import Path

from spotwright.adapters.terraform.changes import Action, ResourceChange
from spotwright.adapters.terraform.held_state import is_made
from spotwright.domain.errors import BadInputError
from spotwright.domain.rental import WantedFleet

_ENDS = (Action.DELETE, Action.FORGET)


def refuse_other_fleet(
    folder: Path, last: WantedFleet | None, before: WantedFleet | None, after: WantedFleet
) -> None:
    """Raise BadInputError where the plan would orphan a fleet, or take its folder.

    Args:
        folder: whose fleet it is.
        last: what the folder's variables ask for; None: there are none.
        before: what of it is rented; None: nothing.
        after: what the plan asks for.
    """
    held = [("fleet", last.name, after.name)] if last else []
    if before is not None:
        held.append(("region", before.region, after.region))
        held.append(("a fleet of", _kind(before), _kind(after)))
    for what, was, becomes in held:
        if was != becomes:
            raise BadInputError(
                f"{folder} is for {what} {was!r}, and this plan is for {what} {becomes!r}: choose "
                "another folder with --dir, or `spotwright destroy` what is rented first"
            )


def refuse_foreign_root(
    folder: Path,
    resources: Collection[str],
    after: WantedFleet,
    changes: Iterable[ResourceChange],
) -> None:
    """Raise BadInputError where the folder's configuration does not rent what is planned.

    Args:
        folder: where the configuration is.
        resources: addresses of what its state holds.
        after: what is planned.
        changes: what Terraform would do.
    """
    made = set(resources)
    for change in changes:
        if change.action not in _ENDS:
            made.add(change.address)
        elif not change.is_leftover:
            made.discard(change.address)
    ignored = [pool.key for pool in after.pools if not is_made(pool.key, made)]
    if after.functions and not any("aws_lambda_function." in address for address in made):
        ignored.append("functions")
    if ignored:
        raise BadInputError(
            f"the configuration in {folder} makes nothing for {', '.join(ignored)}: it has to call "
            "Spotwright's module with these variables; choose an empty folder with --dir, or see "
            "docs/terraform.md"
        )


def _kind(fleet: WantedFleet) -> str:
    return "instances" if fleet.functions is None else "functions"
