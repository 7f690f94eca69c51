"""Wiring: which catalog a command reads, and job files checked against it."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import Config, read_config
from spotwright.cli.extras import needs_extra
from spotwright.domain.errors import JobFileError, PinnedPoolError, UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.domain.questions import JobDocument
from spotwright.usecases.check_names import check_names
from spotwright.usecases.check_pins import check_pins
from spotwright.usecases.ports import OfferSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spotwright.adapters.catalog.catalog import Catalog
    from spotwright.adapters.catalog.snapshot_file import FileSnapshotStore
    from spotwright.adapters.jobfile.read import LoadedJob

_KEPT_JOBS = 32  # of those asked about last


@dataclass(frozen=True, slots=True)
class OpenedJob:
    """A job file whose every name is known to the catalog it will be priced with."""

    loaded: "LoadedJob"
    catalog: OfferSource
    model: str | None = None  # which workload, where the file holds several

    @property
    def job(self) -> JobSpec:
        """The job of the file, or of the model that was chosen."""
        return self.loaded.of_model(self.model)

    @property
    def jobs(self) -> "Mapping[str, JobSpec]":
        """Every job of the file by its model; the one that was chosen alone."""
        return {self.model: self.job} if self.model else self.loaded.specs


class Catalogs:
    """The catalog of each cloud, read again when its file has changed."""

    def __init__(self, config: Config, *, file: Path | None = None) -> None:
        """Read the snapshot the user named, else the last refreshed one, else the bundled one."""
        self._config, self._file = config, file
        self._opened: dict[Cloud, tuple[object, Catalog]] = {}

    def of(self, cloud: Cloud) -> "Catalog":
        """Return the catalog of a cloud as it is now."""
        files = self._state_of_files(cloud)
        if cloud not in self._opened or self._opened[cloud][0] != files:
            self._opened[cloud] = files, self._read(cloud)
        return self._opened[cloud][1]

    def _named(self, cloud: Cloud) -> Path | None:
        return self._file or (self._config.catalog if cloud is Cloud.AWS else None)

    def _read(self, cloud: Cloud) -> "Catalog":
        with needs_extra("plan", "the catalog"):
            from spotwright.adapters.catalog.catalog import Catalog  # noqa: PLC0415
            from spotwright.adapters.catalog.snapshot_file import load_snapshot  # noqa: PLC0415
        named = self._named(cloud)
        if named:
            return Catalog(load_snapshot(named, cloud=cloud))
        return Catalog(snapshot_store(cloud, self._config).load())

    def _state_of_files(self, cloud: Cloud) -> object:
        """Return what changes when the file that is read does, or another one takes its place."""
        path = self._named(cloud) or _refreshed(cloud, self._config)
        try:
            state = path.stat()
        except OSError:
            return path, None
        return path, state.st_ino, state.st_size, state.st_mtime_ns


class Jobs:
    """Job files checked against catalogs; those asked about last are kept."""

    def __init__(self, catalog_of: "Callable[[Cloud], OfferSource]") -> None:
        self._catalog_of = catalog_of
        self._kept: OrderedDict[JobDocument, OpenedJob] = OrderedDict()

    def open(self, document: JobDocument) -> OpenedJob:
        """Check a job and open the catalog of its cloud; wrong names and pins are errors."""
        kept = self._kept.get(document)
        if kept is None or kept.catalog is not self._catalog_of(_cloud(kept.loaded)):
            kept = _checked(document, self._catalog_of)
            self._kept[document] = kept
        self._kept.move_to_end(document)
        if len(self._kept) > _KEPT_JOBS:
            self._kept.popitem(last=False)
        return kept


def _checked(document: JobDocument, catalog_of: "Callable[[Cloud], OfferSource]") -> OpenedJob:
    with needs_extra("plan", "reading job files"):
        from spotwright.adapters.jobfile.read import parse_job  # noqa: PLC0415
    loaded = parse_job(document.text, path=document.name)
    catalog = catalog_of(_cloud(loaded))
    try:
        for job in loaded.specs.values():
            check_names(job, catalog)
            check_pins(job, catalog)
    except (UnknownNameError, PinnedPoolError) as error:
        raise loaded.locate(error) from error
    return OpenedJob(loaded, catalog, document.model)


def _cloud(loaded: "LoadedJob") -> Cloud:
    return next(iter(loaded.specs.values())).limits.cloud


def open_catalog(cloud: Cloud, *, file: Path | None = None) -> "Catalog":
    """Open the snapshot the user named, else the last refreshed one, else the bundled one."""
    return Catalogs(read_config(), file=file).of(cloud)


def snapshot_store(cloud: Cloud, config: Config) -> "FileSnapshotStore":
    """Return the place where refreshed snapshots of a cloud are kept."""
    from spotwright.adapters.catalog.snapshot_file import FileSnapshotStore  # noqa: PLC0415

    return FileSnapshotStore(cloud, refreshed=_refreshed(cloud, config))


def _refreshed(cloud: Cloud, config: Config) -> Path:
    return config.data_dir / "catalog" / f"{cloud}.json"


def read_document(path: Path, *, model: str | None = None) -> JobDocument:
    """Read a job file as it stands."""
    if not path.exists():
        raise JobFileError("no such file", path=str(path))
    with needs_extra("plan", "reading job files"):
        from spotwright.adapters.jobfile.read import job_text  # noqa: PLC0415
    return JobDocument(text=job_text(path), name=str(path), model=model)


def open_job(
    path: Path, *, catalog_file: Path | None = None, model: str | None = None
) -> OpenedJob:
    """Read a job file and the catalog of its cloud; wrong names and pins are errors."""
    catalogs = Catalogs(read_config(), file=catalog_file)
    return Jobs(catalogs.of).open(read_document(path, model=model))


def age_text(observed: datetime) -> str:
    """Say how old prices are."""
    days = (datetime.now(UTC) - observed).total_seconds() / 86400
    return f"{days:.0f} days old" if days >= 2 else f"{days * 24:.0f} h old"
