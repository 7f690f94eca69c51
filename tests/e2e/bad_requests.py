"""Requests that no well-behaved client sends: random bytes, mutations, hostile fields."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from spotwright.v1 import catalog_pb2, job_pb2, planner_pb2, telemetry_pb2

_EXAMPLE = Path(__file__).parents[2] / "examples" / "resnet50.yaml"
_FLEET = "g4dn.xlarge*2@use1-az6/spot"

JOB_TEXT = (
    _EXAMPLE.read_text(encoding="utf-8")
    .replace("gpus: [T4, A10G, L4, L40S]", "types: [g4dn.xlarge]\n  zones: [use1-az6]")
    .replace("max_nodes: 32", "max_nodes: 2")
    .replace("deadline: 16h", "deadline: 500h")
)
_BILLION_LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghi")
)
HOSTILE_YAML = (
    "[" * 100_000,
    "{" * 50_000,
    "[" * 1_000_000,
    "- " * 20_000 + "x",
    _BILLION_LAUGHS,
    "a: &a [*a]",
    "<<: &x {<<: *x}",
    "!!python/object/apply:os.system ['true']",
    "name: !!binary ////",
    "? {a: b}\n: c",
    "%YAML 9.9\n---\nx",
    "\t\tx: y",
    "x: " + "9" * 10_000,
    "x: 1" + ":59" * 5_000,
    "x: .nan\ny: -.inf",
    "2026-99-99",
    r'name: "\ud800"',
    r'"\udfff": 1',
    JOB_TEXT.replace("name: resnet50", r'name: "\ud83d"'),
    JOB_TEXT.replace("per_gpu: 128", "per_gpu: .nan"),
    JOB_TEXT.replace("per_gpu: 128", "per_gpu: 1e308"),
    JOB_TEXT.replace("per_gpu: 128", "per_gpu: -1"),
    JOB_TEXT.replace("epochs: 90", "epochs: 1e300"),
    JOB_TEXT.replace("102 MB", "1e300 MB"),
    JOB_TEXT.replace("samples: 1281167", "samples: 0"),
    JOB_TEXT.replace("confidence: 95%", "confidence: 100%"),
    JOB_TEXT.replace("max_nodes: 2", "max_nodes: 999999999999"),
    JOB_TEXT.replace("resnet50", "\u0000\u202e\U0001f600"),
    JOB_TEXT.replace("4.3 ms", "1e-320 ms"),
    JOB_TEXT.replace("deadline: 500h", "deadline: 1e-9 s"),
)
HOSTILE_TEXTS = (
    "", "\0", "a\0b", "\u202e\u200b", "\U0001f600" * 50, "x" * 100_000, "' OR 1=1 --", "../../etc",
    "%s%n{0}", "\r\nX-Header: 1", "aws", "T4", "g4dn.xlarge", "p-0", "null", "NaN", "-1", "\ud7ff",
    _FLEET, "g4dn.xlarge*99999999999999999999", "g4dn.xlarge*" + "(" * 5_000, "+" * 10_000,
    "ps=" * 2_000, "model,workers\n" + "1,2,3\n" * 100, ",,,\n", '"' * 999,
)  # fmt: skip
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-9, 1e18, 0.5,
)  # fmt: skip
_INT64 = (0, 1, -1, 2, 100, 10_000, 2**31 - 1, -(2**31), 2**53, 2**63 - 1, -(2**63))
_INT32 = (0, 1, -1, 2, 7, 100, 10_000, 2**31 - 1, -(2**31))
_INTEGERS_OF_64_BITS = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64)
_MAX_DEPTH = 4


class Known(NamedTuple):
    """Names of what the daemon has, so that requests get beyond not finding it."""

    plan_id: str = "p-0"
    job_id: str = "j-0"
    stopped_job_id: str = "j-1"
    agent_id: str = "fuzz"


NOTHING_KNOWN = Known()


class Wire(NamedTuple):
    """A method and the bytes that it is asked with."""

    method: str
    request: bytes


def valid_requests(known: Known = NOTHING_KNOWN) -> Mapping[str, Message]:
    """Return requests that mean something, by service and method."""
    job = planner_pb2.JobDocument(text=JOB_TEXT, name="job.yaml")
    plan = planner_pb2.CreatePlanRequest(job=job, gap_fraction=0.5, time_limit_s=0.05)
    asked: dict[str, dict[str, Message]] = {
        "CatalogService": {
            "GetCatalog": catalog_pb2.GetCatalogRequest(cloud="aws"),
            "ListOffers": catalog_pb2.ListOffersRequest(
                filter=catalog_pb2.OfferFilter(instance_types=["g4dn.xlarge"], min_memory_gib=1)
            ),
            "ListInstanceTypes": catalog_pb2.ListInstanceTypesRequest(cloud="azure"),
            "GetInstanceType": catalog_pb2.GetInstanceTypeRequest(name="g4dn.xlarge"),
            "ListGpus": catalog_pb2.ListGpusRequest(),
            "GetGpu": catalog_pb2.GetGpuRequest(name="T4"),
        },
        "PlannerService": {
            "Predict": planner_pb2.PredictRequest(job=job, fleet=_FLEET),
            "PredictConfigurations": planner_pb2.PredictConfigurationsRequest(job=job, csv="a,b\n"),
            "CompareFleets": planner_pb2.CompareFleetsRequest(job=job, fleets=[_FLEET]),
            "CreatePlan": plan,
            "GetPlan": planner_pb2.GetPlanRequest(plan_id=known.plan_id),
            "ListPlans": planner_pb2.ListPlansRequest(page_size=3),
            "RenderTfvars": planner_pb2.RenderTfvarsRequest(plan_id=known.plan_id),
        },
        "JobService": {
            "CreateJob": job_pb2.CreateJobRequest(request_id="r", plan_id=known.plan_id),
            "GetJob": job_pb2.GetJobRequest(job_id=known.job_id),
            "ListJobs": job_pb2.ListJobsRequest(page_size=2, states=["JOB_STATE_RUNNING"]),
            "ListJobEvents": job_pb2.ListJobEventsRequest(job_id=known.job_id, after_sequence=1),
            "ReportProgress": job_pb2.ReportProgressRequest(
                request_id="r", job_id=known.job_id, progress=job_pb2.Progress(samples=1, loss=2)
            ),
            "StopJob": job_pb2.StopJobRequest(
                request_id="r", job_id=known.stopped_job_id, reason="x"
            ),
            "GetJobReport": job_pb2.GetJobReportRequest(job_id=known.job_id),
        },
        "TelemetryService": {
            "ListAgents": telemetry_pb2.ListAgentsRequest(page_size=1),
            "ListSamples": telemetry_pb2.ListSamplesRequest(agent_id=known.agent_id, page_size=5),
            "ListRollups": telemetry_pb2.ListRollupsRequest(
                agent_id=known.agent_id, resolution="ROLLUP_RESOLUTION_MINUTE"
            ),
            "SendCommand": telemetry_pb2.SendCommandRequest(
                agent_id=known.agent_id,
                command=telemetry_pb2.Command(drain=telemetry_pb2.Drain(reconnect_after_s=1)),
            ),
        },
    }
    return {
        f"/spotwright.v1.{service}/{method}": request
        for service, methods in asked.items()
        for method, request in methods.items()
    }


def bad_requests(*, seed: int, count: int, known: Known) -> Iterator[Wire]:
    """Yield so many requests of every kind, methods in turn."""
    draw, valid = random.Random(seed), valid_requests(known)
    methods, kinds = list(valid), (_random_bytes, _mutated, _mutated, hostile, hostile, _bad_job)
    for i in range(count):
        method = methods[i % len(methods)]
        make: Callable[[random.Random, Message], bytes] = kinds[(i // len(methods)) % len(kinds)]
        yield Wire(method, make(draw, valid[method]))


def _random_bytes(draw: random.Random, _request: Message) -> bytes:
    return draw.randbytes(draw.choice([1, 3, 10, 100, 5_000]))


def _mutated(draw: random.Random, request: Message) -> bytes:
    """Return a request with bits flipped, an end missing, or parts of it twice."""
    data = bytearray(request.SerializeToString())
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                del data[at:]
            case 2:
                data += data[at : at + 200]
            case _:
                data[at:at] = draw.randbytes(draw.randint(1, 8))
    return bytes(data)


def hostile(draw: random.Random, request: Message) -> bytes:
    """Return a request of the right type whose every field may be anything."""
    message = type(request)()
    fill(message, draw)
    for name in ("job", "goal", *Known._fields):  # often right, to get beyond the first check
        if name in message.DESCRIPTOR.fields_by_name and draw.random() < 0.7:
            _set(message, name, getattr(request, name))
    if isinstance(message, planner_pb2.CreatePlanRequest):
        message.time_limit_s = draw.choice([0.01, 0.05, -1.0, 0.0, math.nan])
    return message.SerializeToString()


def _set(message: Message, name: str, value: Any) -> None:
    if isinstance(value, Message):
        getattr(message, name).CopyFrom(value)
    else:
        setattr(message, name, value)


def _bad_job(draw: random.Random, request: Message) -> bytes:
    """Return a request whose job file is hostile, or like `hostile` where it has none."""
    if "job" not in request.DESCRIPTOR.fields_by_name:
        return hostile(draw, request)
    message: Any = type(request)()
    message.CopyFrom(request)
    message.job.text = draw.choice(HOSTILE_YAML)
    return bytes(message.SerializeToString())


def fill(message: Message, draw: random.Random, *, depth: int = 0) -> None:
    """Set some fields of a message to values that nobody expects."""
    for field in message.DESCRIPTOR.fields:
        if draw.random() < 0.4 or depth > _MAX_DEPTH:
            continue
        if field.message_type is not None:
            if field.is_repeated:
                if not field.message_type.GetOptions().map_entry:
                    fill(getattr(message, field.name).add(), draw, depth=depth + 1)
            else:
                child = getattr(message, field.name)
                child.SetInParent()
                fill(child, draw, depth=depth + 1)
        elif field.is_repeated:
            values = [_value(field, draw) for _ in range(draw.choice([1, 2, 50]))]
            getattr(message, field.name).extend(values)
        else:
            setattr(message, field.name, _value(field, draw))


def _value(field: Any, draw: random.Random) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return draw.choice(HOSTILE_TEXTS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return draw.random() < 0.5
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return draw.choice(_FLOATS)
    if field.type in _INTEGERS_OF_64_BITS:
        return draw.choice(_INT64)
    return draw.choice(_INT32)
