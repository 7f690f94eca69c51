"""The environment that Terraform runs in: where its providers are, and nothing that it would ask.

Terraform gets providers from its registry, from folders it knows by itself, or from a mirror that a
CLI configuration names. A machine that cannot reach the registry often has a mirror and no
configuration: then one is written that names it. A configuration of the user's own is left alone.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex

_HOST = "registry.terraform.io"
_PLACES = ("/opt", "/usr/lib", "/usr/local/lib", "/usr/local/share", "/usr/share", "/srv")
_IMPLIED = (".terraform.d/plugins", ".local/share/terraform/plugins")  # below the home folder
_SYSTEM_IMPLIED = ("/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins")
_QUIET = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_INPUT": "0"}


def terraform_environment(
    given: Mapping[str, str], *, config_file: Path, places: Iterable[str] = _PLACES
) -> dict[str, str]:
    """Return the variables to run Terraform with.

    Args:
        given: those of this process.
        config_file: where a CLI configuration is written if one is needed.
        places: folders in whose subfolders a mirror may be.
    """
    environment = {**given, **_QUIET}
    named = environment.pop("TF_CLI_CONFIG_FILE", None)
    if named is not None and Path(named).is_file():  # else it would be warned of at every command
        # Terraform runs in another folder than whoever named it.
        return environment | {"TF_CLI_CONFIG_FILE": os.path.abspath(named)}
    if Path(given.get("HOME", "/"), ".terraformrc").is_file():
        return environment
    mirror = provider_mirror(given, places=places)
    if mirror is not None:
        _write_config(config_file, _cli_config(mirror))
        environment["TF_CLI_CONFIG_FILE"] = str(config_file)
    return environment


def _write_config(path: Path, text: str) -> None:
    """Write the file in one step and only if it differs: another Terraform may be reading it."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    unfinished = path.with_name(f".{path.name}.{token_hex(8)}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def provider_mirror(given: Mapping[str, str], *, places: Iterable[str] = _PLACES) -> Path | None:
    """Return the folder of providers to name to Terraform; None: it knows those there are."""
    named = given.get("TF_PLUGIN_DIR")
    if named:
        return Path(named).absolute() if _has_aws(Path(named)) else None
    home = Path(given.get("HOME", "/"))
    implied = [home / folder for folder in _IMPLIED] + [Path(f) for f in _SYSTEM_IMPLIED]
    if any(_has_aws(folder) for folder in implied):
        return None
    return next((folder for folder in _subfolders(places) if _has_aws(folder)), None)


def _subfolders(places: Iterable[str]) -> Iterable[Path]:
    for place in places:
        yield Path(place)
        for pattern in ("*", "*/*"):
            yield from sorted(p for p in Path(place).glob(pattern) if os.path.isdir(p / _HOST))


def _has_aws(folder: Path) -> bool:
    return (folder / _HOST / "hashicorp" / "aws").is_dir()


def _cli_config(mirror: Path) -> str:
    """Return a configuration that takes from a mirror what it holds, and all else as usual."""
    found = sorted(p for p in (mirror / _HOST).glob("*/*") if p.is_dir())
    held = json.dumps([f"{_HOST}/{p.parent.name}/{p.name}" for p in found])
    return (
        "provider_installation {\n"
        f"  filesystem_mirror {{\n    path    = {json.dumps(str(mirror))}\n"
        f"    include = {held}\n  }}\n"
        f"  direct {{\n    exclude = {held}\n  }}\n}}\n"
    )
