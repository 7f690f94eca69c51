"""Where an experiment is made."""

from collections.abc import MutableMapping
from dataclasses import dataclass

from lab.hosts import HostProcess
from lab.laboratory import Laboratory
from lab.options import Options
from spotwright.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is there, and what was asked for."""

    lab: Laboratory
    client: Client  # of the daemon
    agents: MutableMapping[str, HostProcess]  # by host
    options: Options
