"""Make sure that a job speaks of hardware that exists.

Names must be spelled as the catalog spells them: they are also keys, of measured speeds and price
ceilings, and a ceiling that is never found would be no ceiling.
"""

from collections.abc import Iterable
from dataclasses import replace

from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import OfferQuery, Pool
from spotwright.domain.quota import QUOTA_CLASSES
from spotwright.domain.workload import FixedBatch, Workload
from spotwright.usecases.ports import OfferSource


def check_names(job: JobSpec, source: OfferSource) -> None:
    """Raise UnknownNameError for the first name that the catalog does not have."""
    limits, workload = job.limits, job.workload
    for name in sorted(limits.gpus):
        _check_gpu(name, source)
    for name in _named_types(job):
        _check_type(name, source)
    for zone in sorted({pool.zone for pool in _named_pools(limits)}):
        _check_zone(zone, limits.cloud, source)
    for name in _named_devices(workload):
        _check_device(name, source)
    if limits.cloud is Cloud.AWS:
        for quota_class, _ in sorted(limits.max_vcpus):
            if quota_class not in QUOTA_CLASSES:
                raise UnknownNameError("quota class", quota_class, known=QUOTA_CLASSES)
    places = OfferQuery(cloud=limits.cloud, regions=limits.regions, zones=limits.zones)
    source.offers(replace(places, max_price_usd_per_hour=0.0))  # none: the names are what counts


def _named_types(job: JobSpec) -> Iterable[str]:
    limits, serving = job.limits, job.workload.parameter_serving
    yield from sorted(limits.instance_types | limits.excluded_types | limits.parameter_server_types)
    yield from sorted(limits.max_count_by_type)
    yield from sorted(limits.max_price_by_type_usd_per_hour)
    yield from sorted({pool.instance_type for pool in _named_pools(limits)})
    if serving is not None and limits.cloud is Cloud.AWS:
        yield serving.default_type


def _named_pools(limits: Limits) -> set[Pool]:
    return {*limits.excluded_pools, *limits.min_count_by_pool}


def _named_devices(workload: Workload) -> Iterable[str]:
    yield from sorted(workload.compute)
    if isinstance(workload.batch, FixedBatch):
        yield from sorted(workload.batch.by_device)


def _check_gpu(name: str, source: OfferSource) -> None:
    _check_spelling("GPU", name, source.gpu(name).name)


def _check_type(name: str, source: OfferSource) -> None:
    _check_spelling("instance type", name, source.instance_type(name).name)


def _check_zone(name: str, cloud: Cloud, source: OfferSource) -> None:
    query = OfferQuery(cloud=cloud, zones=frozenset({name}), include_retired=True)
    for offer in source.offers(query)[:1]:
        _check_spelling("zone", name, offer.zone)


def _check_spelling(kind: str, name: str, known: str) -> None:
    if name != known:
        raise UnknownNameError(kind, name, known=[known])


def _check_device(name: str, source: OfferSource) -> None:
    """Accept a GPU name or an instance type."""
    try:
        _check_gpu(name, source)
    except UnknownNameError as no_gpu:
        try:
            _check_type(name, source)
        except UnknownNameError as no_type:
            raise (no_gpu if no_gpu.nearest else no_type) from None
