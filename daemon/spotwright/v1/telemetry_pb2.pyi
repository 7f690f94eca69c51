import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PcieSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PCIE_SOURCE_UNSPECIFIED: _ClassVar[PcieSource]
    PCIE_SOURCE_COUNTER: _ClassVar[PcieSource]
    PCIE_SOURCE_SAMPLED: _ClassVar[PcieSource]

class NoticeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOTICE_KIND_UNSPECIFIED: _ClassVar[NoticeKind]
    NOTICE_KIND_HINT: _ClassVar[NoticeKind]
    NOTICE_KIND_INTERRUPTION: _ClassVar[NoticeKind]
    NOTICE_KIND_WITHDRAWN: _ClassVar[NoticeKind]

class RollupResolution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLLUP_RESOLUTION_UNSPECIFIED: _ClassVar[RollupResolution]
    ROLLUP_RESOLUTION_TEN_SECONDS: _ClassVar[RollupResolution]
    ROLLUP_RESOLUTION_MINUTE: _ClassVar[RollupResolution]
PCIE_SOURCE_UNSPECIFIED: PcieSource
PCIE_SOURCE_COUNTER: PcieSource
PCIE_SOURCE_SAMPLED: PcieSource
NOTICE_KIND_UNSPECIFIED: NoticeKind
NOTICE_KIND_HINT: NoticeKind
NOTICE_KIND_INTERRUPTION: NoticeKind
NOTICE_KIND_WITHDRAWN: NoticeKind
ROLLUP_RESOLUTION_UNSPECIFIED: RollupResolution
ROLLUP_RESOLUTION_TEN_SECONDS: RollupResolution
ROLLUP_RESOLUTION_MINUTE: RollupResolution

class AgentFacts(_message.Message):
    __slots__ = ("agent_id", "boot_id", "agent_version", "hostname", "instance_id", "instance_type", "zone", "market", "job_id", "gpu_names")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARKET_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    GPU_NAMES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    boot_id: str
    agent_version: str
    hostname: str
    instance_id: str
    instance_type: str
    zone: str
    market: str
    job_id: str
    gpu_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., agent_version: _Optional[str] = ..., hostname: _Optional[str] = ..., instance_id: _Optional[str] = ..., instance_type: _Optional[str] = ..., zone: _Optional[str] = ..., market: _Optional[str] = ..., job_id: _Optional[str] = ..., gpu_names: _Optional[_Iterable[str]] = ...) -> None: ...

class GpuSample(_message.Message):
    __slots__ = ("gpu_index", "utilization_fraction", "memory_used_bytes", "pcie_rx_mbps", "pcie_tx_mbps", "pcie_source", "nvlink_rx_mbps", "nvlink_tx_mbps", "sm_clock_mhz", "throttle_reasons", "uncorrected_error_count", "last_xid", "power_w", "temperature_c")
    GPU_INDEX_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FRACTION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PCIE_RX_MBPS_FIELD_NUMBER: _ClassVar[int]
    PCIE_TX_MBPS_FIELD_NUMBER: _ClassVar[int]
    PCIE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    NVLINK_RX_MBPS_FIELD_NUMBER: _ClassVar[int]
    NVLINK_TX_MBPS_FIELD_NUMBER: _ClassVar[int]
    SM_CLOCK_MHZ_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_REASONS_FIELD_NUMBER: _ClassVar[int]
    UNCORRECTED_ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_XID_FIELD_NUMBER: _ClassVar[int]
    POWER_W_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_C_FIELD_NUMBER: _ClassVar[int]
    gpu_index: int
    utilization_fraction: float
    memory_used_bytes: int
    pcie_rx_mbps: float
    pcie_tx_mbps: float
    pcie_source: PcieSource
    nvlink_rx_mbps: float
    nvlink_tx_mbps: float
    sm_clock_mhz: float
    throttle_reasons: int
    uncorrected_error_count: int
    last_xid: int
    power_w: float
    temperature_c: float
    def __init__(self, gpu_index: _Optional[int] = ..., utilization_fraction: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., pcie_rx_mbps: _Optional[float] = ..., pcie_tx_mbps: _Optional[float] = ..., pcie_source: _Optional[_Union[PcieSource, str]] = ..., nvlink_rx_mbps: _Optional[float] = ..., nvlink_tx_mbps: _Optional[float] = ..., sm_clock_mhz: _Optional[float] = ..., throttle_reasons: _Optional[int] = ..., uncorrected_error_count: _Optional[int] = ..., last_xid: _Optional[int] = ..., power_w: _Optional[float] = ..., temperature_c: _Optional[float] = ...) -> None: ...

class HostSample(_message.Message):
    __slots__ = ("time_unix_ms", "interval_s", "cpu_fraction", "cpu_steal_fraction", "memory_used_bytes", "network_rx_mbps", "network_tx_mbps", "rdma_rx_mbps", "rdma_tx_mbps", "disk_read_mbps", "gpus", "cpu_limit_count", "cpu_throttled_fraction", "network_reached_mbps")
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    CPU_FRACTION_FIELD_NUMBER: _ClassVar[int]
    CPU_STEAL_FRACTION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_RX_MBPS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_TX_MBPS_FIELD_NUMBER: _ClassVar[int]
    RDMA_RX_MBPS_FIELD_NUMBER: _ClassVar[int]
    RDMA_TX_MBPS_FIELD_NUMBER: _ClassVar[int]
    DISK_READ_MBPS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_COUNT_FIELD_NUMBER: _ClassVar[int]
    CPU_THROTTLED_FRACTION_FIELD_NUMBER: _ClassVar[int]
    NETWORK_REACHED_MBPS_FIELD_NUMBER: _ClassVar[int]
    time_unix_ms: int
    interval_s: float
    cpu_fraction: float
    cpu_steal_fraction: float
    memory_used_bytes: int
    network_rx_mbps: float
    network_tx_mbps: float
    rdma_rx_mbps: float
    rdma_tx_mbps: float
    disk_read_mbps: float
    gpus: _containers.RepeatedCompositeFieldContainer[GpuSample]
    cpu_limit_count: float
    cpu_throttled_fraction: float
    network_reached_mbps: float
    def __init__(self, time_unix_ms: _Optional[int] = ..., interval_s: _Optional[float] = ..., cpu_fraction: _Optional[float] = ..., cpu_steal_fraction: _Optional[float] = ..., memory_used_bytes: _Optional[int] = ..., network_rx_mbps: _Optional[float] = ..., network_tx_mbps: _Optional[float] = ..., rdma_rx_mbps: _Optional[float] = ..., rdma_tx_mbps: _Optional[float] = ..., disk_read_mbps: _Optional[float] = ..., gpus: _Optional[_Iterable[_Union[GpuSample, _Mapping]]] = ..., cpu_limit_count: _Optional[float] = ..., cpu_throttled_fraction: _Optional[float] = ..., network_reached_mbps: _Optional[float] = ...) -> None: ...

class StepSample(_message.Message):
    __slots__ = ("time_unix_ms", "rank", "step", "step_s", "data_wait_s", "compute_s", "communication_s", "samples", "loss")
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    DATA_WAIT_S_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_S_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATION_S_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    time_unix_ms: int
    rank: int
    step: int
    step_s: float
    data_wait_s: float
    compute_s: float
    communication_s: float
    samples: float
    loss: float
    def __init__(self, time_unix_ms: _Optional[int] = ..., rank: _Optional[int] = ..., step: _Optional[int] = ..., step_s: _Optional[float] = ..., data_wait_s: _Optional[float] = ..., compute_s: _Optional[float] = ..., communication_s: _Optional[float] = ..., samples: _Optional[float] = ..., loss: _Optional[float] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("kind", "time_unix_ms", "deadline_unix_ms", "source", "detail", "deadline_by_host_clock")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_BY_HOST_CLOCK_FIELD_NUMBER: _ClassVar[int]
    kind: NoticeKind
    time_unix_ms: int
    deadline_unix_ms: int
    source: str
    detail: str
    deadline_by_host_clock: bool
    def __init__(self, kind: _Optional[_Union[NoticeKind, str]] = ..., time_unix_ms: _Optional[int] = ..., deadline_unix_ms: _Optional[int] = ..., source: _Optional[str] = ..., detail: _Optional[str] = ..., deadline_by_host_clock: _Optional[bool] = ...) -> None: ...

class CollectorFault(_message.Message):
    __slots__ = ("collector", "problem")
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    collector: str
    problem: str
    def __init__(self, collector: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("sequence", "send_time_unix_ms", "samples", "steps", "notices", "faults", "dropped_sample_count", "probes")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SEND_TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    send_time_unix_ms: int
    samples: _containers.RepeatedCompositeFieldContainer[HostSample]
    steps: _containers.RepeatedCompositeFieldContainer[StepSample]
    notices: _containers.RepeatedCompositeFieldContainer[Notice]
    faults: _containers.RepeatedCompositeFieldContainer[CollectorFault]
    dropped_sample_count: int
    probes: _containers.RepeatedCompositeFieldContainer[ProbeResult]
    def __init__(self, sequence: _Optional[int] = ..., send_time_unix_ms: _Optional[int] = ..., samples: _Optional[_Iterable[_Union[HostSample, _Mapping]]] = ..., steps: _Optional[_Iterable[_Union[StepSample, _Mapping]]] = ..., notices: _Optional[_Iterable[_Union[Notice, _Mapping]]] = ..., faults: _Optional[_Iterable[_Union[CollectorFault, _Mapping]]] = ..., dropped_sample_count: _Optional[int] = ..., probes: _Optional[_Iterable[_Union[ProbeResult, _Mapping]]] = ...) -> None: ...

class ProbeResult(_message.Message):
    __slots__ = ("command_id", "peer", "time_unix_ms", "sent_mbps", "received_mbps", "round_trip_s", "limited_by", "problem")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SENT_MBPS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_MBPS_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_S_FIELD_NUMBER: _ClassVar[int]
    LIMITED_BY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    peer: str
    time_unix_ms: int
    sent_mbps: float
    received_mbps: float
    round_trip_s: float
    limited_by: str
    problem: str
    def __init__(self, command_id: _Optional[str] = ..., peer: _Optional[str] = ..., time_unix_ms: _Optional[int] = ..., sent_mbps: _Optional[float] = ..., received_mbps: _Optional[float] = ..., round_trip_s: _Optional[float] = ..., limited_by: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("hello", "batch")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    hello: AgentFacts
    batch: Batch
    def __init__(self, hello: _Optional[_Union[AgentFacts, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("welcome", "ack", "command")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    ack: Ack
    command: Command
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("last_sequence", "max_unacked_batches", "max_batch_bytes", "server_time_unix_ms", "sampling")
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_UNACKED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    last_sequence: int
    max_unacked_batches: int
    max_batch_bytes: int
    server_time_unix_ms: int
    sampling: Sampling
    def __init__(self, last_sequence: _Optional[int] = ..., max_unacked_batches: _Optional[int] = ..., max_batch_bytes: _Optional[int] = ..., server_time_unix_ms: _Optional[int] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("interval_s", "batch_s")
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    BATCH_S_FIELD_NUMBER: _ClassVar[int]
    interval_s: float
    batch_s: float
    def __init__(self, interval_s: _Optional[float] = ..., batch_s: _Optional[float] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("command_id", "set_sampling", "drain", "checkpoint", "probe")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    SET_SAMPLING_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    set_sampling: Sampling
    drain: Drain
    checkpoint: Checkpoint
    probe: Probe
    def __init__(self, command_id: _Optional[str] = ..., set_sampling: _Optional[_Union[Sampling, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ..., probe: _Optional[_Union[Probe, _Mapping]] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("reconnect_after_s",)
    RECONNECT_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    reconnect_after_s: float
    def __init__(self, reconnect_after_s: _Optional[float] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("seconds_left", "interval_s")
    SECONDS_LEFT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    seconds_left: float
    interval_s: float
    def __init__(self, seconds_left: _Optional[float] = ..., interval_s: _Optional[float] = ...) -> None: ...

class Probe(_message.Message):
    __slots__ = ("peer", "duration_s", "max_mbps")
    PEER_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    MAX_MBPS_FIELD_NUMBER: _ClassVar[int]
    peer: str
    duration_s: float
    max_mbps: float
    def __init__(self, peer: _Optional[str] = ..., duration_s: _Optional[float] = ..., max_mbps: _Optional[float] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("facts", "connected", "last_seen_time", "clock_skew_s", "last_sequence", "dropped_sample_count", "latest_sample", "latest_step", "notice", "faults", "latest_probe", "failed_probe")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_TIME_FIELD_NUMBER: _ClassVar[int]
    CLOCK_SKEW_S_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LATEST_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    LATEST_STEP_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    LATEST_PROBE_FIELD_NUMBER: _ClassVar[int]
    FAILED_PROBE_FIELD_NUMBER: _ClassVar[int]
    facts: AgentFacts
    connected: bool
    last_seen_time: _timestamp_pb2.Timestamp
    clock_skew_s: float
    last_sequence: int
    dropped_sample_count: int
    latest_sample: HostSample
    latest_step: StepSample
    notice: Notice
    faults: _containers.RepeatedCompositeFieldContainer[CollectorFault]
    latest_probe: ProbeResult
    failed_probe: ProbeResult
    def __init__(self, facts: _Optional[_Union[AgentFacts, _Mapping]] = ..., connected: _Optional[bool] = ..., last_seen_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., clock_skew_s: _Optional[float] = ..., last_sequence: _Optional[int] = ..., dropped_sample_count: _Optional[int] = ..., latest_sample: _Optional[_Union[HostSample, _Mapping]] = ..., latest_step: _Optional[_Union[StepSample, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., faults: _Optional[_Iterable[_Union[CollectorFault, _Mapping]]] = ..., latest_probe: _Optional[_Union[ProbeResult, _Mapping]] = ..., failed_probe: _Optional[_Union[ProbeResult, _Mapping]] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    next_page_token: str
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchAgentsRequest(_message.Message):
    __slots__ = ("job_id", "interval_s")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    interval_s: float
    def __init__(self, job_id: _Optional[str] = ..., interval_s: _Optional[float] = ...) -> None: ...

class WatchAgentsResponse(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ...) -> None: ...

class ListSamplesRequest(_message.Message):
    __slots__ = ("agent_id", "start_time", "end_time", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSamplesResponse(_message.Message):
    __slots__ = ("samples", "next_page_token")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    samples: _containers.RepeatedCompositeFieldContainer[HostSample]
    next_page_token: str
    def __init__(self, samples: _Optional[_Iterable[_Union[HostSample, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRollupsRequest(_message.Message):
    __slots__ = ("agent_id", "start_time", "end_time", "resolution", "page_size", "page_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    resolution: RollupResolution
    page_size: int
    page_token: str
    def __init__(self, agent_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolution: _Optional[_Union[RollupResolution, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRollupsResponse(_message.Message):
    __slots__ = ("rollups", "next_page_token")
    ROLLUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rollups: _containers.RepeatedCompositeFieldContainer[Rollup]
    next_page_token: str
    def __init__(self, rollups: _Optional[_Iterable[_Union[Rollup, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Rollup(_message.Message):
    __slots__ = ("start_time", "gpu_sample_count", "host_sample_count", "step_count", "statistics")
    class StatisticsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Statistic
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Statistic, _Mapping]] = ...) -> None: ...
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    GPU_SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOST_SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    gpu_sample_count: int
    host_sample_count: int
    step_count: int
    statistics: _containers.MessageMap[str, Statistic]
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., gpu_sample_count: _Optional[int] = ..., host_sample_count: _Optional[int] = ..., step_count: _Optional[int] = ..., statistics: _Optional[_Mapping[str, Statistic]] = ...) -> None: ...

class Statistic(_message.Message):
    __slots__ = ("mean", "max")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    mean: float
    max: float
    def __init__(self, mean: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class SendCommandRequest(_message.Message):
    __slots__ = ("agent_id", "command")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    command: Command
    def __init__(self, agent_id: _Optional[str] = ..., command: _Optional[_Union[Command, _Mapping]] = ...) -> None: ...

class SendCommandResponse(_message.Message):
    __slots__ = ("command_id",)
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    def __init__(self, command_id: _Optional[str] = ...) -> None: ...
