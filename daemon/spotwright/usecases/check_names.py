"""Make sure that a job speaks of hardware that exists."""

from collections.abc import Iterable

from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import OfferQuery
from spotwright.domain.quota import QUOTA_CLASSES
from spotwright.usecases.ports import OfferSource


def check_names(job: JobSpec, source: OfferSource) -> None:
    """Raise UnknownNameError for the first name that the catalog does not have."""
    limits, workload = job.limits, job.workload
    for name in sorted(limits.gpus):
        source.gpu(name)
    for name in _named_types(job):
        source.instance_type(name)
    for name in sorted(workload.compute):
        _check_device(name, source)
    if limits.cloud is Cloud.AWS:
        for quota_class, _ in sorted(limits.max_vcpus):
            if quota_class not in QUOTA_CLASSES:
                raise UnknownNameError("quota class", quota_class, known=QUOTA_CLASSES)
    source.offers(OfferQuery(cloud=limits.cloud, regions=limits.regions, zones=limits.zones))


def _named_types(job: JobSpec) -> Iterable[str]:
    limits, serving = job.limits, job.workload.parameter_serving
    yield from sorted(limits.instance_types | limits.excluded_types | limits.parameter_server_types)
    yield from sorted(limits.max_count_by_type)
    yield from sorted(limits.max_price_by_type_usd_per_hour)
    if serving is not None and limits.cloud is Cloud.AWS:
        yield serving.default_type


def _check_device(name: str, source: OfferSource) -> None:
    """Accept a GPU name or an instance type."""
    try:
        source.gpu(name)
    except UnknownNameError as no_gpu:
        try:
            source.instance_type(name)
        except UnknownNameError:
            raise no_gpu from None
