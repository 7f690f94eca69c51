"""Wiring: which catalog a command reads, and job files checked against it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import Config, read_config
from spotwright.cli.extras import needs_extra
from spotwright.domain.errors import PinnedPoolError, UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.usecases.check_names import check_names
from spotwright.usecases.check_pins import check_pins

if TYPE_CHECKING:
    from spotwright.adapters.catalog.catalog import Catalog
    from spotwright.adapters.catalog.snapshot_file import FileSnapshotStore
    from spotwright.adapters.jobfile.read import LoadedJob


@dataclass(frozen=True, slots=True)
class JobAndCatalog:
    """A job file whose every name is known to the catalog it will be priced with."""

    loaded: "LoadedJob"
    catalog: "Catalog"
    model: str | None = None  # which workload, where the file holds several

    @property
    def job(self) -> JobSpec:
        """The job of the file, or of the model that was chosen."""
        return self.loaded.of_model(self.model)


def open_catalog(cloud: Cloud, *, file: Path | None = None) -> "Catalog":
    """Open the snapshot the user named, else the last refreshed one, else the bundled one."""
    with needs_extra("plan", "the catalog"):
        from spotwright.adapters.catalog.catalog import Catalog  # noqa: PLC0415
        from spotwright.adapters.catalog.snapshot_file import load_snapshot  # noqa: PLC0415
    config = read_config()
    named = file or (config.catalog if cloud is Cloud.AWS else None)
    return Catalog(
        load_snapshot(named, cloud=cloud) if named else snapshot_store(cloud, config).load()
    )


def snapshot_store(cloud: Cloud, config: Config) -> "FileSnapshotStore":
    """Return the place where refreshed snapshots of a cloud are kept."""
    from spotwright.adapters.catalog.snapshot_file import FileSnapshotStore  # noqa: PLC0415

    return FileSnapshotStore(cloud, refreshed=config.data_dir / "catalog" / f"{cloud}.json")


def open_job(
    path: Path, *, catalog_file: Path | None = None, model: str | None = None
) -> JobAndCatalog:
    """Read a job file and the catalog of its cloud; wrong names and pins are errors."""
    with needs_extra("plan", "reading job files"):
        from spotwright.adapters.jobfile.read import read_job_file  # noqa: PLC0415
    loaded = read_job_file(path)
    jobs = list(loaded.specs.values())
    catalog = open_catalog(jobs[0].limits.cloud, file=catalog_file)
    try:
        for job in jobs:
            check_names(job, catalog)
            check_pins(job, catalog)
    except (UnknownNameError, PinnedPoolError) as error:
        raise loaded.locate(error) from error
    return JobAndCatalog(loaded, catalog, model)


def age_text(observed: datetime) -> str:
    """Say how old prices are."""
    days = (datetime.now(UTC) - observed).total_seconds() / 86400
    return f"{days:.0f} days old" if days >= 2 else f"{days * 24:.0f} h old"
