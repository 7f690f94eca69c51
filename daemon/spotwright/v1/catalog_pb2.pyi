import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Market(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MARKET_UNSPECIFIED: _ClassVar[Market]
    MARKET_SPOT: _ClassVar[Market]
    MARKET_ON_DEMAND: _ClassVar[Market]
MARKET_UNSPECIFIED: Market
MARKET_SPOT: Market
MARKET_ON_DEMAND: Market

class Catalog(_message.Message):
    __slots__ = ("cloud", "price_times", "sources")
    class SourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    PRICE_TIMES_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    price_times: PriceTimes
    sources: _containers.ScalarMap[str, str]
    def __init__(self, cloud: _Optional[str] = ..., price_times: _Optional[_Union[PriceTimes, _Mapping]] = ..., sources: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PriceTimes(_message.Message):
    __slots__ = ("region_times", "retired_type_times")
    class RegionTimesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _timestamp_pb2.Timestamp
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    class RetiredTypeTimesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _timestamp_pb2.Timestamp
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    REGION_TIMES_FIELD_NUMBER: _ClassVar[int]
    RETIRED_TYPE_TIMES_FIELD_NUMBER: _ClassVar[int]
    region_times: _containers.MessageMap[str, _timestamp_pb2.Timestamp]
    retired_type_times: _containers.MessageMap[str, _timestamp_pb2.Timestamp]
    def __init__(self, region_times: _Optional[_Mapping[str, _timestamp_pb2.Timestamp]] = ..., retired_type_times: _Optional[_Mapping[str, _timestamp_pb2.Timestamp]] = ...) -> None: ...

class OfferFilter(_message.Message):
    __slots__ = ("cloud", "gpus", "instance_types", "regions", "zones", "markets", "max_price_usd_per_hour", "min_memory_gib", "min_gpu_memory_gib", "min_gpu_count", "efa_only", "with_gpu", "include_retired")
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    ZONES_FIELD_NUMBER: _ClassVar[int]
    MARKETS_FIELD_NUMBER: _ClassVar[int]
    MAX_PRICE_USD_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    MIN_MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    MIN_GPU_MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    MIN_GPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    EFA_ONLY_FIELD_NUMBER: _ClassVar[int]
    WITH_GPU_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_RETIRED_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    gpus: _containers.RepeatedScalarFieldContainer[str]
    instance_types: _containers.RepeatedScalarFieldContainer[str]
    regions: _containers.RepeatedScalarFieldContainer[str]
    zones: _containers.RepeatedScalarFieldContainer[str]
    markets: _containers.RepeatedScalarFieldContainer[Market]
    max_price_usd_per_hour: float
    min_memory_gib: float
    min_gpu_memory_gib: float
    min_gpu_count: float
    efa_only: bool
    with_gpu: bool
    include_retired: bool
    def __init__(self, cloud: _Optional[str] = ..., gpus: _Optional[_Iterable[str]] = ..., instance_types: _Optional[_Iterable[str]] = ..., regions: _Optional[_Iterable[str]] = ..., zones: _Optional[_Iterable[str]] = ..., markets: _Optional[_Iterable[_Union[Market, str]]] = ..., max_price_usd_per_hour: _Optional[float] = ..., min_memory_gib: _Optional[float] = ..., min_gpu_memory_gib: _Optional[float] = ..., min_gpu_count: _Optional[float] = ..., efa_only: _Optional[bool] = ..., with_gpu: _Optional[bool] = ..., include_retired: _Optional[bool] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("name", "architecture", "memory_gib", "memory_mbps", "fp32_flops", "fp16_flops", "bf16_flops")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MBPS_FIELD_NUMBER: _ClassVar[int]
    FP32_FLOPS_FIELD_NUMBER: _ClassVar[int]
    FP16_FLOPS_FIELD_NUMBER: _ClassVar[int]
    BF16_FLOPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    architecture: str
    memory_gib: float
    memory_mbps: float
    fp32_flops: float
    fp16_flops: float
    bf16_flops: float
    def __init__(self, name: _Optional[str] = ..., architecture: _Optional[str] = ..., memory_gib: _Optional[float] = ..., memory_mbps: _Optional[float] = ..., fp32_flops: _Optional[float] = ..., fp16_flops: _Optional[float] = ..., bf16_flops: _Optional[float] = ...) -> None: ...

class InstanceType(_message.Message):
    __slots__ = ("name", "cloud", "vcpu_count", "memory_gib", "gpu_name", "gpu_count", "gpu_memory_gib", "network_baseline_mbps", "network_peak_mbps", "network_card_count", "efa_interface_count", "pcie_mbps", "nvlink_mbps", "local_disk_gb", "disk_mbps", "quota_class", "retired")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    VCPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    GPU_NAME_FIELD_NUMBER: _ClassVar[int]
    GPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    GPU_MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BASELINE_MBPS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_PEAK_MBPS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_CARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    EFA_INTERFACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PCIE_MBPS_FIELD_NUMBER: _ClassVar[int]
    NVLINK_MBPS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DISK_GB_FIELD_NUMBER: _ClassVar[int]
    DISK_MBPS_FIELD_NUMBER: _ClassVar[int]
    QUOTA_CLASS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    cloud: str
    vcpu_count: float
    memory_gib: float
    gpu_name: str
    gpu_count: float
    gpu_memory_gib: float
    network_baseline_mbps: float
    network_peak_mbps: float
    network_card_count: int
    efa_interface_count: int
    pcie_mbps: float
    nvlink_mbps: float
    local_disk_gb: float
    disk_mbps: float
    quota_class: str
    retired: bool
    def __init__(self, name: _Optional[str] = ..., cloud: _Optional[str] = ..., vcpu_count: _Optional[float] = ..., memory_gib: _Optional[float] = ..., gpu_name: _Optional[str] = ..., gpu_count: _Optional[float] = ..., gpu_memory_gib: _Optional[float] = ..., network_baseline_mbps: _Optional[float] = ..., network_peak_mbps: _Optional[float] = ..., network_card_count: _Optional[int] = ..., efa_interface_count: _Optional[int] = ..., pcie_mbps: _Optional[float] = ..., nvlink_mbps: _Optional[float] = ..., local_disk_gb: _Optional[float] = ..., disk_mbps: _Optional[float] = ..., quota_class: _Optional[str] = ..., retired: _Optional[bool] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("instance_type", "region", "zone", "market", "price_usd_per_hour", "interruption_fraction")
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARKET_FIELD_NUMBER: _ClassVar[int]
    PRICE_USD_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTION_FRACTION_FIELD_NUMBER: _ClassVar[int]
    instance_type: str
    region: str
    zone: str
    market: Market
    price_usd_per_hour: float
    interruption_fraction: float
    def __init__(self, instance_type: _Optional[str] = ..., region: _Optional[str] = ..., zone: _Optional[str] = ..., market: _Optional[_Union[Market, str]] = ..., price_usd_per_hour: _Optional[float] = ..., interruption_fraction: _Optional[float] = ...) -> None: ...

class GetCatalogRequest(_message.Message):
    __slots__ = ("cloud",)
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    def __init__(self, cloud: _Optional[str] = ...) -> None: ...

class GetCatalogResponse(_message.Message):
    __slots__ = ("catalog",)
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    catalog: Catalog
    def __init__(self, catalog: _Optional[_Union[Catalog, _Mapping]] = ...) -> None: ...

class ListOffersRequest(_message.Message):
    __slots__ = ("filter",)
    FILTER_FIELD_NUMBER: _ClassVar[int]
    filter: OfferFilter
    def __init__(self, filter: _Optional[_Union[OfferFilter, _Mapping]] = ...) -> None: ...

class ListOffersResponse(_message.Message):
    __slots__ = ("offers", "instance_types", "price_times")
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    PRICE_TIMES_FIELD_NUMBER: _ClassVar[int]
    offers: _containers.RepeatedCompositeFieldContainer[Offer]
    instance_types: _containers.RepeatedCompositeFieldContainer[InstanceType]
    price_times: PriceTimes
    def __init__(self, offers: _Optional[_Iterable[_Union[Offer, _Mapping]]] = ..., instance_types: _Optional[_Iterable[_Union[InstanceType, _Mapping]]] = ..., price_times: _Optional[_Union[PriceTimes, _Mapping]] = ...) -> None: ...

class ListInstanceTypesRequest(_message.Message):
    __slots__ = ("cloud",)
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    def __init__(self, cloud: _Optional[str] = ...) -> None: ...

class ListInstanceTypesResponse(_message.Message):
    __slots__ = ("instance_types",)
    INSTANCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    instance_types: _containers.RepeatedCompositeFieldContainer[InstanceType]
    def __init__(self, instance_types: _Optional[_Iterable[_Union[InstanceType, _Mapping]]] = ...) -> None: ...

class GetInstanceTypeRequest(_message.Message):
    __slots__ = ("cloud", "name")
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    name: str
    def __init__(self, cloud: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetInstanceTypeResponse(_message.Message):
    __slots__ = ("instance_type",)
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    instance_type: InstanceType
    def __init__(self, instance_type: _Optional[_Union[InstanceType, _Mapping]] = ...) -> None: ...

class ListGpusRequest(_message.Message):
    __slots__ = ("cloud",)
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    def __init__(self, cloud: _Optional[str] = ...) -> None: ...

class ListGpusResponse(_message.Message):
    __slots__ = ("gpus",)
    GPUS_FIELD_NUMBER: _ClassVar[int]
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    def __init__(self, gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ...) -> None: ...

class GetGpuRequest(_message.Message):
    __slots__ = ("cloud", "name")
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    cloud: str
    name: str
    def __init__(self, cloud: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetGpuResponse(_message.Message):
    __slots__ = ("gpu",)
    GPU_FIELD_NUMBER: _ClassVar[int]
    gpu: Gpu
    def __init__(self, gpu: _Optional[_Union[Gpu, _Mapping]] = ...) -> None: ...
