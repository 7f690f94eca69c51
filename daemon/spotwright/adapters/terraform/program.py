"""Which program carries out the plans: Terraform, or OpenTofu in its place."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from spotwright.domain.errors import TerraformError

_NAMES = ("terraform", "tofu")
_OLDEST = (1, 9, 0)  # the first that checks one variable against another
_ANSWERS_WITHIN_S = 30.0
_WHERE = (
    "install Terraform 1.9 or newer (https://developer.hashicorp.com/terraform/install) or "
    "OpenTofu 1.9 or newer (https://opentofu.org/docs/intro/install), "
    "or name one with --terraform PATH"
)


@dataclass(frozen=True, slots=True)
class Program:
    """A Terraform that was asked for its version."""

    path: str
    name: str  # terraform or tofu
    version: tuple[int, int, int]


def find_program(named: str | None, *, environment: Mapping[str, str]) -> Program:
    """Return the program to run: the one that was named, else terraform, else tofu on the PATH.

    Raises:
        TerraformError: there is none, it is too old, or what was named is something else.
    """
    path = _path_of(named, environment.get("PATH", os.defpath))
    version = _version(path, environment)
    name = "tofu" if "tofu" in os.path.basename(os.path.realpath(path)) else "terraform"
    if version < _OLDEST:
        found = ".".join(map(str, version))
        raise TerraformError(f"{path} is {name} {found}, and the module needs 1.9; {_WHERE}")
    return Program(path, name, version)


def _path_of(named: str | None, search_path: str) -> str:
    for name in _NAMES if named is None else (named,):
        found = shutil.which(name, path=search_path)
        if found is not None:
            return os.path.abspath(found)  # it is run in another folder
    if named is None:
        raise TerraformError(f"neither terraform nor tofu is on the PATH; {_WHERE}")
    raise TerraformError(f"there is no program {named!r}; {_WHERE}")


def _version(path: str, environment: Mapping[str, str]) -> tuple[int, int, int]:
    try:
        answer = subprocess.run(
            [path, "version", "-json"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWERS_WITHIN_S,
            check=False,
        )
        told = str(json.loads(answer.stdout)["terraform_version"])  # tofu calls it so too
    except OSError as error:
        raise TerraformError(f"cannot run {path}: {error.strerror or error}; {_WHERE}") from error
    except subprocess.TimeoutExpired as error:
        raise TerraformError(
            f"{path} did not tell its version in {_ANSWERS_WITHIN_S:g} s; {_WHERE}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise TerraformError(
            f"{path} did not answer `version -json` as Terraform does; {_WHERE}"
        ) from error
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", told)
    if numbers is None:
        raise TerraformError(f"{path} says its version is {told!r}, which is none; {_WHERE}")
    return int(numbers[1]), int(numbers[2]), int(numbers[3])
