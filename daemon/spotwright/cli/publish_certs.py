"""`spotwright certs publish`: a certificate for each host of a rented fleet."""

import signal
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import read_flag
from spotwright.cli.options import AsJson
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.units import parse_duration_s
from spotwright.usecases.publish_certificates import (
    CertificateIssuer,
    HostStep,
    Step,
    publish_certificates,
)
from spotwright.usecases.rental_ports import CertificateShelf

_LEAST_DAYS = 7  # hosts look for a renewed one daily, in the last third of its life
_Round = Callable[[], Iterator[HostStep]]


class _Store(StrEnum):
    SSM = "ssm"
    SECRETS_MANAGER = "secretsmanager"


def publish(
    *,
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of certificates.")],
    fleet_dir: Annotated[
        Path | None,
        typer.Option("--fleet-dir", metavar="DIR", help="Terraform folder of the fleet."),
    ] = None,
    fleet: Annotated[
        str | None, typer.Option(metavar="NAME", help="The fleet, instead of --fleet-dir.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="Where the fleet is; with --fleet.")
    ] = None,
    store: Annotated[
        _Store,
        typer.Option(help="Where hosts fetch theirs; as the module's agent.certificate_store."),
    ] = _Store.SSM,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Look again so often, such as 30s, until Ctrl-C."),
    ] = None,
    days: Annotated[int, typer.Option(min=_LEAST_DAYS, help="Valid for so long.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Give each running host of a fleet a certificate to fetch.

    Each host finds its own in a store of the AWS account, and can read no other. A certificate is
    renewed in the last third of its life, and removed when its host is gone. Spot hosts are
    replaced at any time, so keep it running with --every: then each change is printed as a line.

    \b
    spotwright certs publish --dir tls --fleet-dir fleet --every 30s
    spotwright certs publish --dir tls --fleet resnet50 --region us-east-1 --store secretsmanager
    """
    wait_s = None if every is None else read_flag("--every", parse_duration_s, every)
    name, place = _which_fleet(fleet_dir, fleet, region)
    one_round = _rounds(name, place, store=store, issuer=_issuer(folder, days=days))
    if wait_s is not None:
        _go_on(one_round, wait_s=wait_s, as_json=as_json)
        return
    done: list[HostStep] = []
    try:
        done.extend(one_round())
    except OutsideWorldError:
        if done:
            _print(name, place, done, as_json=as_json)
        raise
    _print(name, place, done, as_json=as_json)


def _which_fleet(fleet_dir: Path | None, fleet: str | None, region: str | None) -> tuple[str, str]:
    """Return name and region of the fleet that is meant."""
    from spotwright.adapters.terraform.fleet_folder import FleetFolder  # noqa: PLC0415
    from spotwright.adapters.terraform.read_variables import (  # noqa: PLC0415
        FLEET_NAME,
        read_wanted_fleet,
    )

    if fleet_dir is not None and fleet is None and region is None:
        wanted = read_wanted_fleet(FleetFolder(fleet_dir).variables_file)
        return wanted.name, wanted.region
    if fleet_dir is not None or fleet is None or region is None:
        raise BadInputError(
            "say which fleet: either --fleet-dir DIR, or --fleet NAME and --region REGION"
        )
    if not FLEET_NAME.fullmatch(fleet):
        raise BadInputError(
            f"--fleet: {fleet!r} is no fleet's name: lower-case letters, digits and hyphens"
        )
    return fleet, region


def _issuer(folder: Path, *, days: int) -> CertificateIssuer:
    with needs_extra("daemon", "certs"):
        from spotwright.adapters.tls.host_certificates import host_issuer  # noqa: PLC0415
    return host_issuer(folder, days=days)


def _rounds(fleet: str, region: str, *, store: _Store, issuer: CertificateIssuer) -> _Round:
    """Return what looks at the fleet once and mends the shelf."""
    with needs_extra("aws", "certs publish"):
        from spotwright.adapters.aws.rented_fleets import AwsRentedFleets  # noqa: PLC0415

    fleets = AwsRentedFleets(region, clock=_now)
    shelf = _shelf(fleet, region, store=store)
    return lambda: publish_certificates(
        fleet, fleets=fleets, shelf=shelf, issuer=issuer, now=_now()
    )


def _shelf(fleet: str, region: str, *, store: _Store) -> CertificateShelf:
    from spotwright.adapters.aws import certificate_shelf  # noqa: PLC0415

    if store is _Store.SSM:
        return certificate_shelf.ParameterStoreShelf(fleet, region=region)
    return certificate_shelf.SecretsManagerShelf(fleet, region=region)


def _go_on(one_round: _Round, *, wait_s: float, as_json: bool) -> None:
    """Mend the shelf again and again until Ctrl-C, and print each change as it is made."""
    stopping = _stop_on_interrupt()
    while not stopping.is_set():
        try:
            for step in one_round():
                if step.step is not Step.KEPT:
                    _print_line(step, as_json=as_json)
                if stopping.is_set():
                    return
        except OutsideWorldError as error:
            note(f"error: {error}; tried again in {wait_s:g} s")
        stopping.wait(wait_s)


def _stop_on_interrupt() -> Event:
    """Let Ctrl-C end the rounds after the host at hand; a second one ends at once."""
    stopping, usual = Event(), signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, stop)
    return stopping


def _print_line(step: HostStep, *, as_json: bool) -> None:
    if as_json:
        print_json(_document(step), in_one_line=True)
    else:
        print(" ".join(_row(step)).rstrip(), flush=True)


def _print(fleet: str, region: str, done: Sequence[HostStep], *, as_json: bool) -> None:
    if as_json:
        hosts = [_document(step) for step in done]
        print_json({"fleet_name": fleet, "region": region, "hosts": hosts})
    elif done:
        print_table(("done", "host", "ends"), [_row(step) for step in done])
    else:
        note(f"no host of the fleet {fleet} runs in {region}")


def _document(step: HostStep) -> dict[str, Any]:
    end = None if step.expire_time is None else step.expire_time.isoformat()
    return {"step": step.step, "instance_id": step.instance_id, "expire_time": end}


def _row(step: HostStep) -> tuple[str, str, str]:
    end = "" if step.expire_time is None else f"{step.expire_time:%Y-%m-%d %H:%M}"
    return step.step, step.instance_id, end


def _now() -> datetime:
    return datetime.now(UTC)
