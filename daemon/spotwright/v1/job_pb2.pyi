import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from spotwright.v1 import accounting_pb2 as _accounting_pb2
from spotwright.v1 import planner_pb2 as _planner_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_SUCCEEDED: _ClassVar[JobState]
    JOB_STATE_STOPPED: _ClassVar[JobState]

class SteerMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEER_MODE_UNSPECIFIED: _ClassVar[SteerMode]
    STEER_MODE_OFF: _ClassVar[SteerMode]
    STEER_MODE_ANNOUNCE: _ClassVar[SteerMode]
    STEER_MODE_WRITE: _ClassVar[SteerMode]
    STEER_MODE_APPLY: _ClassVar[SteerMode]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_SUCCEEDED: JobState
JOB_STATE_STOPPED: JobState
STEER_MODE_UNSPECIFIED: SteerMode
STEER_MODE_OFF: SteerMode
STEER_MODE_ANNOUNCE: SteerMode
STEER_MODE_WRITE: SteerMode
STEER_MODE_APPLY: SteerMode

class Forecast(_message.Message):
    __slots__ = ("duration_s", "cost_usd")
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    duration_s: _planner_pb2.Interval
    cost_usd: _planner_pb2.Interval
    def __init__(self, duration_s: _Optional[_Union[_planner_pb2.Interval, _Mapping]] = ..., cost_usd: _Optional[_Union[_planner_pb2.Interval, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("samples", "steps", "loss")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    samples: float
    steps: float
    loss: float
    def __init__(self, samples: _Optional[float] = ..., steps: _Optional[float] = ..., loss: _Optional[float] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("job_id", "name", "plan_id", "state", "create_time", "update_time", "start_time", "end_time", "progress", "progress_fraction", "controller", "steer_mode", "first_plan_id", "spent_usd", "forecast")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FRACTION_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    STEER_MODE_FIELD_NUMBER: _ClassVar[int]
    FIRST_PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    SPENT_USD_FIELD_NUMBER: _ClassVar[int]
    FORECAST_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    plan_id: str
    state: JobState
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    progress: Progress
    progress_fraction: float
    controller: str
    steer_mode: SteerMode
    first_plan_id: str
    spent_usd: float
    forecast: Forecast
    def __init__(self, job_id: _Optional[str] = ..., name: _Optional[str] = ..., plan_id: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., progress_fraction: _Optional[float] = ..., controller: _Optional[str] = ..., steer_mode: _Optional[_Union[SteerMode, str]] = ..., first_plan_id: _Optional[str] = ..., spent_usd: _Optional[float] = ..., forecast: _Optional[_Union[Forecast, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("sequence", "event_time", "kind", "text", "facts")
    class FactsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    event_time: _timestamp_pb2.Timestamp
    kind: str
    text: str
    facts: _containers.ScalarMap[str, str]
    def __init__(self, sequence: _Optional[int] = ..., event_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ..., facts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ("request_id", "plan_id", "steer_mode")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    STEER_MODE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    plan_id: str
    steer_mode: SteerMode
    def __init__(self, request_id: _Optional[str] = ..., plan_id: _Optional[str] = ..., steer_mode: _Optional[_Union[SteerMode, str]] = ...) -> None: ...

class CreateJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[JobState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[JobState, str]]] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListJobEventsRequest(_message.Message):
    __slots__ = ("job_id", "after_sequence", "page_size")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    after_sequence: int
    page_size: int
    def __init__(self, job_id: _Optional[str] = ..., after_sequence: _Optional[int] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListJobEventsResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job_id", "after_sequence")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    after_sequence: int
    def __init__(self, job_id: _Optional[str] = ..., after_sequence: _Optional[int] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("job", "event")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    job: Job
    event: Event
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class ReportProgressRequest(_message.Message):
    __slots__ = ("request_id", "job_id", "progress")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    job_id: str
    progress: Progress
    def __init__(self, request_id: _Optional[str] = ..., job_id: _Optional[str] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ...) -> None: ...

class ReportProgressResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class StopJobRequest(_message.Message):
    __slots__ = ("request_id", "job_id", "reason")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    job_id: str
    reason: str
    def __init__(self, request_id: _Optional[str] = ..., job_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class StopJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class GetJobReportRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobReportResponse(_message.Message):
    __slots__ = ("job", "lines", "terms", "accounts")
    JOB_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    job: Job
    lines: _containers.RepeatedCompositeFieldContainer[ReportLine]
    terms: _containers.RepeatedCompositeFieldContainer[LiveTerm]
    accounts: _accounting_pb2.JobAccounts
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., lines: _Optional[_Iterable[_Union[ReportLine, _Mapping]]] = ..., terms: _Optional[_Iterable[_Union[LiveTerm, _Mapping]]] = ..., accounts: _Optional[_Union[_accounting_pb2.JobAccounts, _Mapping]] = ...) -> None: ...

class ReportLine(_message.Message):
    __slots__ = ("figure", "planned", "measured")
    FIGURE_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    figure: str
    planned: float
    measured: float
    def __init__(self, figure: _Optional[str] = ..., planned: _Optional[float] = ..., measured: _Optional[float] = ...) -> None: ...

class LiveTerm(_message.Message):
    __slots__ = ("instance_type", "term", "planned_s", "measured_s", "planned_mbps", "measured_mbps", "is_bottleneck", "text")
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    PLANNED_S_FIELD_NUMBER: _ClassVar[int]
    MEASURED_S_FIELD_NUMBER: _ClassVar[int]
    PLANNED_MBPS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MBPS_FIELD_NUMBER: _ClassVar[int]
    IS_BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    instance_type: str
    term: str
    planned_s: float
    measured_s: float
    planned_mbps: float
    measured_mbps: float
    is_bottleneck: bool
    text: str
    def __init__(self, instance_type: _Optional[str] = ..., term: _Optional[str] = ..., planned_s: _Optional[float] = ..., measured_s: _Optional[float] = ..., planned_mbps: _Optional[float] = ..., measured_mbps: _Optional[float] = ..., is_bottleneck: _Optional[bool] = ..., text: _Optional[str] = ...) -> None: ...
