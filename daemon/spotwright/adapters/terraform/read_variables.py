"""The generated variables read back: what fleet.auto.tfvars.json asks for.

The file is ours, yet people edit it. What Spotwright does not write is refused, because what runs
is compared with what is read here, and a guess would accuse the wrong pool.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from spotwright.adapters.terraform.variables import SCHEMA_VERSION, pool_key
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import FunctionGroup, Role
from spotwright.domain.offer import Market
from spotwright.domain.rental import WantedFleet, WantedPool

FLEET_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ANEW = "`spotwright plan JOB --tfvars FILE` writes it anew"
_FLEET_KEYS = frozenset(
    {"schema_version", "fleet_name", "plan_id", "region", "cost_usd_low", "cost_usd_high", "pools"}
)
_POOL_KEYS = frozenset(
    {"role", "instance_type", "zone_id", "market", "node_count"}
    | {"max_price_usd_per_hour", "efa_interfaces"}
)
_FUNCTION_KEYS = frozenset({"memory_mb", "function_count"})
_PRICE = re.compile(r"(?=.*[1-9])[0-9]+(\.[0-9]+)?")  # the module refuses a ceiling of nothing
_TEXT = re.compile(r"\S+")


def read_wanted_fleet(path: Path) -> WantedFleet:
    """Return what a file of variables asks for.

    Raises:
        BadInputError: there is no such file, or Spotwright would not have written it so.
    """
    variables = _Table(_parsed(path), path=path)
    _check_schema(variables)
    variables.check_keys(_FLEET_KEYS, optional={"functions"})
    pools = variables.table("pools")
    return WantedFleet(
        name=variables.text("fleet_name", FLEET_NAME, "lower-case letters, digits and hyphens"),
        plan_id=variables.text("plan_id"),
        region=variables.text("region"),
        low_cost_usd=variables.amount("cost_usd_low"),
        high_cost_usd=variables.amount("cost_usd_high"),
        pools=tuple(_pool(key, pools.table(key)) for key in sorted(pools.values)),
        functions=_functions(variables) if "functions" in variables.values else None,
    )


def _parsed(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(
            f"{path}: no such file; `spotwright apply` or `spotwright plan --tfvars` writes it"
        ) from None
    except UnicodeDecodeError:
        raise BadInputError(f"{path}: not a text file (expected UTF-8); {_ANEW}") from None
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{path}: not JSON: {error}; {_ANEW}") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object without twins: of two equal keys only the last one would be seen."""
    counts = Counter(name for name, _ in pairs)
    twins = sorted(name for name, count in counts.items() if count > 1)
    if twins:
        raise ValueError(f"{', '.join(twins)} is there twice")
    return dict(pairs)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _check_schema(variables: "_Table") -> None:
    """Look at the version first: a newer file may have other keys."""
    variables.check_keys({"schema_version"}, optional=variables.values)
    version = variables.whole("schema_version", least=1)
    if version > SCHEMA_VERSION:
        variables.refuse(
            "schema_version",
            f"this Spotwright reads {SCHEMA_VERSION}: upgrade it; with this one {_ANEW}",
        )


def _pool(key: str, table: "_Table") -> WantedPool:
    table.check_keys(_POOL_KEYS)
    table.whole("efa_interfaces", least=0)  # Terraform's business
    price = table.text("max_price_usd_per_hour", _PRICE, 'a price in quotes, such as "0.52"')
    pool = WantedPool(
        key=key,
        role=Role(table.member("role", Role)),
        instance_type=table.text("instance_type"),
        zone=table.text("zone_id"),
        market=Market(table.member("market", Market)),
        node_count=table.whole("node_count", least=1),
        max_price_usd_per_hour=float(price),
    )
    due = pool_key(pool.role, pool.pool)
    if key != due:
        table.fail(f"its role, type, zone and market make it {due}; mend them, or rename it")
    return pool


def _functions(variables: "_Table") -> FunctionGroup:
    table = variables.table("functions")
    table.check_keys(_FUNCTION_KEYS)
    return FunctionGroup(
        memory_mb=table.whole("memory_mb", least=1),
        function_count=table.whole("function_count", least=1),
    )


class _Table:
    """An object of the file, which knows where in the file it is."""

    def __init__(self, values: object, *, path: Path, place: tuple[str, ...] = ()) -> None:
        self._path, self._place = path, place
        if not isinstance(values, dict):
            self.fail(f"found {_shown(values)} where an object belongs; {_ANEW}")
        self.values: dict[str, Any] = values

    def check_keys(self, needed: Collection[str], *, optional: Collection[str] = ()) -> None:
        missing = sorted(set(needed) - self.values.keys())
        if missing:
            self.fail(f"{', '.join(missing)} missing; {_ANEW}")
        foreign = sorted(self.values.keys() - set(needed) - set(optional))
        if foreign:
            self.fail(
                f"{', '.join(foreign)} is nothing that a plan writes; settings of your own belong "
                "in main.tf or another .tfvars file"
            )

    def table(self, key: str) -> "_Table":
        return _Table(self.values[key], path=self._path, place=(*self._place, key))

    def text(self, key: str, pattern: re.Pattern[str] = _TEXT, due: str = "a name") -> str:
        value = self.values[key]
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.refuse(key, f"write {due}")
        return value

    def member(self, key: str, kind: type[StrEnum]) -> str:
        value = self.values[key]
        if value not in list(kind):
            self.refuse(key, f"write {' or '.join(kind)}")
        return str(value)

    def whole(self, key: str, *, least: int) -> int:
        value = self.values[key]
        if type(value) is not int or value < least:  # a bool is an int
            self.refuse(key, f"write a whole number of at least {least}")
        return value

    def amount(self, key: str) -> float:
        value = self.values[key]
        if type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:
            self.refuse(key, "write a number that is not negative")
        return float(value)

    def refuse(self, key: str, remedy: str) -> NoReturn:
        self.fail(f"{key} is {_shown(self.values[key])}; {remedy}")

    def fail(self, problem: str) -> NoReturn:
        raise BadInputError(": ".join([str(self._path), *self._place, problem]))


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
