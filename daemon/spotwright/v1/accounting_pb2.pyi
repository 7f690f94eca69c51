import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobAccounts(_message.Message):
    __slots__ = ("until_time", "pools", "timeline", "event_counts", "marks", "progress", "priced_usd", "unpriced_node_hours")
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNTS_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PRICED_USD_FIELD_NUMBER: _ClassVar[int]
    UNPRICED_NODE_HOURS_FIELD_NUMBER: _ClassVar[int]
    until_time: _timestamp_pb2.Timestamp
    pools: _containers.RepeatedCompositeFieldContainer[PoolAccount]
    timeline: _containers.RepeatedCompositeFieldContainer[NodeSpan]
    event_counts: _containers.RepeatedCompositeFieldContainer[EventCount]
    marks: _containers.RepeatedCompositeFieldContainer[EventMark]
    progress: _containers.RepeatedCompositeFieldContainer[ProgressPoint]
    priced_usd: float
    unpriced_node_hours: float
    def __init__(self, until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[PoolAccount, _Mapping]]] = ..., timeline: _Optional[_Iterable[_Union[NodeSpan, _Mapping]]] = ..., event_counts: _Optional[_Iterable[_Union[EventCount, _Mapping]]] = ..., marks: _Optional[_Iterable[_Union[EventMark, _Mapping]]] = ..., progress: _Optional[_Iterable[_Union[ProgressPoint, _Mapping]]] = ..., priced_usd: _Optional[float] = ..., unpriced_node_hours: _Optional[float] = ...) -> None: ...

class PoolAccount(_message.Message):
    __slots__ = ("instance_type", "zone", "market", "planned_market", "role", "planned_node_count", "price_usd_per_hour", "planned_usd", "granted_node_hours", "actual_usd", "interruption_count", "below_planned_fraction")
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARKET_FIELD_NUMBER: _ClassVar[int]
    PLANNED_MARKET_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PLANNED_NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PRICE_USD_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    PLANNED_USD_FIELD_NUMBER: _ClassVar[int]
    GRANTED_NODE_HOURS_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_USD_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    BELOW_PLANNED_FRACTION_FIELD_NUMBER: _ClassVar[int]
    instance_type: str
    zone: str
    market: str
    planned_market: str
    role: str
    planned_node_count: int
    price_usd_per_hour: float
    planned_usd: float
    granted_node_hours: float
    actual_usd: float
    interruption_count: int
    below_planned_fraction: float
    def __init__(self, instance_type: _Optional[str] = ..., zone: _Optional[str] = ..., market: _Optional[str] = ..., planned_market: _Optional[str] = ..., role: _Optional[str] = ..., planned_node_count: _Optional[int] = ..., price_usd_per_hour: _Optional[float] = ..., planned_usd: _Optional[float] = ..., granted_node_hours: _Optional[float] = ..., actual_usd: _Optional[float] = ..., interruption_count: _Optional[int] = ..., below_planned_fraction: _Optional[float] = ...) -> None: ...

class NodeSpan(_message.Message):
    __slots__ = ("agent_id", "instance_id", "instance_type", "zone", "market", "start_time", "end_time", "price_usd_per_hour", "is_running")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARKET_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PRICE_USD_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    IS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    instance_id: str
    instance_type: str
    zone: str
    market: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    price_usd_per_hour: float
    is_running: bool
    def __init__(self, agent_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., instance_type: _Optional[str] = ..., zone: _Optional[str] = ..., market: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., price_usd_per_hour: _Optional[float] = ..., is_running: _Optional[bool] = ...) -> None: ...

class EventCount(_message.Message):
    __slots__ = ("kind", "event_count")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    event_count: int
    def __init__(self, kind: _Optional[str] = ..., event_count: _Optional[int] = ...) -> None: ...

class EventMark(_message.Message):
    __slots__ = ("event_time", "kind", "text")
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    event_time: _timestamp_pb2.Timestamp
    kind: str
    text: str
    def __init__(self, event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ProgressPoint(_message.Message):
    __slots__ = ("point_time", "fraction")
    POINT_TIME_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    point_time: _timestamp_pb2.Timestamp
    fraction: float
    def __init__(self, point_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fraction: _Optional[float] = ...) -> None: ...
