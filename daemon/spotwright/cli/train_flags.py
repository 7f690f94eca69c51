"""The flags of `spotwright train`, and how many of each role they come to."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError
from spotwright.domain.workload import Strategy


class Role(StrEnum):
    """What a process is in training."""

    PS = "ps"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainFlags:
    """What was asked for."""

    script: str
    plan: Path | None
    job: Path | None
    role: Role | None
    strategy: Strategy | None
    workers: int | None
    servers: str | None
    steps: int | None
    batch: int | None
    checkpoint: str | None
    every: int
    index: int
    listen: str | None
    name: str | None
    linger_s: float
    tls_dir: Path | None
    threads: int | None
    model: str | None
    catalog_file: Path | None
    as_json: bool

    def __post_init__(self) -> None:
        if self.plan is not None and self.job is not None:
            raise BadInputError("--plan has a plan and --job asks for one: give one of them")
        if self.batch is not None and self.batch < 1:
            raise BadInputError(f"a batch of {self.batch} samples; --batch counts from 1")
        if self.role is Role.PS and self.listen is None:
            raise BadInputError("--role ps needs --listen HOST:PORT, where workers reach it")
        if self.role is Role.WORKER and self.server_addresses is None:
            raise BadInputError("--role worker needs --servers A:PORT,B:PORT")
        if self.role is not Role.WORKER and self.server_addresses is not None:
            raise BadInputError("--servers is a number here; addresses go with --role worker")

    @property
    def server_count(self) -> int | None:
        """How many servers were asked for; None: as planned, or they are named."""
        if self.servers is None or not self.servers.strip().isdecimal():
            return None
        if int(self.servers) < 1:
            raise BadInputError("--servers counts from 1")
        return int(self.servers)

    @property
    def server_addresses(self) -> tuple[str, ...] | None:
        """Where servers are; None: it is not said."""
        if self.servers is None or self.server_count is not None:
            return None
        return tuple(str(Address.parse(text.strip())) for text in self.servers.split(","))
