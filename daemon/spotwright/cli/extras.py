"""Optional dependencies: an import that fails for want of one says which extra to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from spotwright.domain.errors import MissingExtraError

# Top packages that an extra brings, under the names they are imported by.
_PLAN = frozenset({"click", "numpy", "ortools", "pydantic", "rich", "scipy", "typer", "yaml"})
_DAEMON = frozenset({"alembic", "cryptography", "grpc_health", "grpc_reflection",
                     "prometheus_client", "psycopg", "pyarrow", "sqlalchemy"})  # fmt: skip
_BROUGHT_BY = {
    "plan": _PLAN,
    "aws": _PLAN | {"boto3", "botocore", "python_terraform"},
    "daemon": _PLAN | _DAEMON,
    "train": _PLAN | {"torch"},
    "ray": _PLAN | {"ray"},
    "plot": _PLAN | {"matplotlib"},
}


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Say that `what` needs `extra` where a package of that extra cannot be imported.

    Any other module that is missing is a fault of ours or of the installation, and stays one.

    Raises:
        MissingExtraError: a package that this extra brings is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _BROUGHT_BY[extra]:
            raise
        raise MissingExtraError(what, extra=extra) from error
