"""What an agent is told: flags, over `SPOTWRIGHT_AGENT_*` variables, over a TOML file.

Every setting has one name: `spool_max_mib` in the file, `SPOTWRIGHT_AGENT_SPOOL_MAX_MIB` in the
environment, `--spool-max-mib` as a flag.
"""

import argparse
import os
import re
import signal
import socket
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from spotwright_agent.tls_files import TlsFiles

DEFAULT_FILE = Path("/etc/spotwright/agent.toml")
_PREFIX = "SPOTWRIGHT_AGENT_"
CLOUDS = ("auto", "aws", "gcp", "azure", "none")
MARKETS = ("", "spot", "on-demand")
_JOB_SIGNALS = {each.name for each in signal.Signals} - {"SIGKILL", "SIGSTOP"}
_NOT_SETTINGS = {"socket"}  # SPOTWRIGHT_AGENT_SOCKET is for training processes
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class SettingsError(Exception):
    """A setting cannot be used; the text names it and says what to change."""


def _told(default: Any, about: str, *, metavar: str = "") -> Any:
    return field(default=default, metadata={"about": about, "metavar": metavar})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, with the defaults of a host installed by `install`."""

    daemon: str = _told("127.0.0.1:7443", "where the daemon listens", metavar="HOST:PORT")
    agent_id: str = _told("", "name of this agent, as in its certificate; empty: the host's name")
    job_id: str = _told("", "job that this host works for")
    tls_dir: str = _told("", "folder with ca.crt and agents/ID.crt and .key", metavar="DIR")
    state_dir: str = _told("/var/lib/spotwright-agent", "where the spool is", metavar="DIR")
    runtime_dir: str = _told(
        "/run/spotwright-agent", "where the training socket and the notice are", metavar="DIR"
    )
    instance_type: str = _told("", "instance type, where the cloud does not tell")
    zone: str = _told("", "zone id, where the cloud does not tell")
    market: str = _told("", "spot or on-demand, where the cloud does not tell")
    cloud: str = _told("auto", "whose metadata to ask for notices: " + ", ".join(CLOUDS))
    metadata_url: str = _told("", "metadata server, in place of the cloud's own", metavar="URL")
    hint_s: float = _told(600.0, "how long a hint holds that nobody repeats", metavar="SECONDS")
    job_signal: str = _told("", "signal for training processes when a notice comes, as SIGUSR1")
    job_pid_file: str = _told("", "file with more processes to signal", metavar="FILE")
    spool_max_mib: float = _told(256.0, "most disk that unsent telemetry takes", metavar="MIB")
    spool_max_days: float = _told(7.0, "oldest unsent telemetry that is kept", metavar="DAYS")
    spool_keep_free_mib: float = _told(
        1024.0, "disk to leave for others; below it nothing is spooled", metavar="MIB"
    )
    probe_listen: str = _told("", "where to answer probes of other agents", metavar="HOST:PORT")
    metrics: str = _told("", "where to show figures of the agent itself", metavar="HOST:PORT")
    sysfs: str = _told("/sys", "root of sysfs", metavar="DIR")
    procfs: str = _told("/proc", "root of procfs", metavar="DIR")

    def __post_init__(self) -> None:
        _check(self)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent_id or socket.gethostname()

    @property
    def tls_files(self) -> TlsFiles | None:
        """The certificate that it shows; None: no TLS."""
        return TlsFiles.of(Path(self.tls_dir), self.name) if self.tls_dir else None

    @property
    def socket_path(self) -> Path:
        """Where training processes report their steps."""
        return Path(self.runtime_dir) / "training.sock"

    @property
    def notice_path(self) -> Path:
        """Where training processes find what the cloud said."""
        return Path(self.runtime_dir) / "notice.json"

    @property
    def spool_path(self) -> Path:
        """What was not acknowledged yet."""
        return Path(self.state_dir) / "spool.db"


def read_settings(
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> Settings:
    """Read the settings; only the default file may be absent."""
    path = file or DEFAULT_FILE
    told = _from_file(path) if file is not None or path.exists() else {}
    told |= _from_environment(environment)
    told |= {name: value for name, value in flags.items() if value is not None}
    return Settings(**told)


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Let every setting be a flag."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"settings; default: {DEFAULT_FILE}"
    )
    for setting in SETTINGS:
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=_KINDS[setting.name],
            metavar=setting.metadata["metavar"] or "TEXT",
            help=f"{setting.metadata['about']} [{setting.default or 'none'}]".replace("%", "%%"),
        )


def settings_of(options: argparse.Namespace) -> Settings:
    """Read the settings, those flags first that were given."""
    flags = {setting.name: getattr(options, setting.name) for setting in SETTINGS}
    return read_settings(flags=flags, file=options.config)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    return {name: _value(name, value, where=str(path)) for name, value in table.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _value(name, text, where=variable)
        for variable, text in environment.items()
        if variable.startswith(_PREFIX)
        and (name := variable.removeprefix(_PREFIX).lower()) not in _NOT_SETTINGS
    }


def _value(name: str, value: Any, *, where: str) -> Any:
    kind = _KINDS.get(name)
    if kind is None:
        raise SettingsError(f"{where} has {name!r}, which is not a setting; see --help")
    if kind is float and not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError):
            raise SettingsError(f"{name} in {where} must be a number, got {value!r}") from None
    if not isinstance(value, str):
        raise SettingsError(f"{name} in {where} must be text in quotes, got {value!r}")
    return value


def _check(settings: Settings) -> None:
    if not _NAME.fullmatch(settings.name):
        raise SettingsError(
            f"agent_id must be 1 to 63 letters, digits, dots, dashes and underscores, a letter or "
            f"digit first, as in its certificate; got {settings.name!r}"
        )
    for name in ("hint_s", "spool_max_mib", "spool_max_days"):
        if not 0 < getattr(settings, name) < float("inf"):
            raise SettingsError(f"{name} must be positive, got {getattr(settings, name)}")
    if not 0 <= settings.spool_keep_free_mib < float("inf"):
        raise SettingsError(
            f"spool_keep_free_mib must not be negative, got {settings.spool_keep_free_mib}"
        )
    if settings.cloud not in CLOUDS:
        raise SettingsError(f"cloud must be one of {', '.join(CLOUDS)}, got {settings.cloud!r}")
    if settings.market not in MARKETS:
        raise SettingsError(f"market must be spot or on-demand, got {settings.market!r}")
    if settings.job_signal and settings.job_signal not in _JOB_SIGNALS:
        raise SettingsError(
            f"job_signal must be one that training can handle, as SIGUSR1 or SIGTERM, "
            f"got {settings.job_signal!r}"
        )
    if settings.metadata_url and not settings.metadata_url.startswith(("http://", "https://")):
        raise SettingsError(f"metadata_url must begin with http://, got {settings.metadata_url!r}")
    for name in ("daemon", "probe_listen", "metrics"):
        _check_address(name, getattr(settings, name))


def _check_address(name: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    usable = host and port.isascii() and port.isdigit() and int(port) < 2**16
    if (address or name == "daemon") and not usable:
        raise SettingsError(f"{name} must be HOST:PORT, got {address!r}")


_KINDS: Mapping[str, type] = typing.get_type_hints(Settings)
SETTINGS = tuple(fields(Settings))
