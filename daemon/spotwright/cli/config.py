"""Settings: flag over environment over file over default, read once.

The file is `spotwright/config.toml` in the user's configuration folder:

    catalog = "/srv/prices/aws.json"    # instead of the refreshed or bundled snapshot
    data_dir = "/var/lib/spotwright"    # where `catalog refresh` keeps its snapshot
    daemon = "plans.example.org:7443"   # who answers plan, predict, compare and catalog
    tls_dir = "~/.config/spotwright/tls"  # ca.crt and, if you have them, client.crt and client.key
    token = "..."                       # who you are, where it is not said by a certificate

A path that begins with `~` lies in a home folder.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from spotwright.domain.errors import BadInputError, nearest_name

_PATHS = ("catalog", "data_dir", "tls_dir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything the environment may decide."""

    catalog: Path | None
    data_dir: Path
    daemon: str | None
    tls_dir: Path | None
    token: str | None = field(repr=False)


def read_config(environment: Mapping[str, str] | None = None) -> Config:
    """Read the settings of this user."""
    env = os.environ if environment is None else environment
    home = Path(env.get("HOME", "/"))
    file = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "spotwright" / "config.toml"
    settings = _settings(file) | _from_environment(env)
    default_data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "spotwright"
    paths = {name: _path(settings[name], home) for name in _PATHS if name in settings}
    return Config(
        catalog=paths.get("catalog"),
        data_dir=paths.get("data_dir", default_data),
        daemon=settings.get("daemon"),
        tls_dir=paths.get("tls_dir"),
        token=settings.get("token"),
    )


def default_store_url() -> str:
    """Return where a daemon of this user keeps what it knows, unless it is told otherwise."""
    return f"sqlite:///{read_config().data_dir / 'daemon.db'}"


def _path(text: str, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return Path(os.path.expanduser(text))  # ~somebody; one who does not exist stays as written


def _settings(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"{file}: {error}") from error
    known = [f.name for f in fields(Config)]
    for key, value in found.items():
        if key not in known or not isinstance(value, str):
            nearest = nearest_name(key, known) or ", ".join(known)
            raise BadInputError(f"{file}: {key!r} is not a text setting; known: {nearest}")
    return found


def _from_environment(env: Mapping[str, str]) -> dict[str, str]:
    names = {f.name: f"SPOTWRIGHT_{f.name.upper()}" for f in fields(Config)}
    return {name: env[variable] for name, variable in names.items() if env.get(variable)}
