"""What runs in the cloud, for commands and for the daemon."""

from datetime import UTC, datetime

from spotwright.usecases.rental_ports import RentedFleets


def open_rented(region: str) -> RentedFleets:
    """Return the fleets of a region, by the credentials of this process.

    Raises:
        OutsideWorldError: the AWS configuration of this machine cannot be used.
    """
    from spotwright.adapters.aws.rented_fleets import AwsRentedFleets  # noqa: PLC0415 boto3

    return AwsRentedFleets(region, clock=lambda: datetime.now(UTC))
