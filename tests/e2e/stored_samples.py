"""What a daemon has stored of an agent, and whether anything is missing in it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub

PATIENCE_S = 60.0
_NEAR_S = 0.5  # half of a sample's interval: clocks are read a moment apart


@contextmanager
def telemetry(address: str) -> Iterator[TelemetryServiceStub]:
    """Open a connection to a daemon on loopback that is shared with no other."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    with grpc.insecure_channel(address, options=options) as channel:
        yield TelemetryServiceStub(channel)


def stored_samples(stub: TelemetryServiceStub, agent_id: str) -> list[v1.HostSample]:
    """Return every sample of an agent that is stored, as often as it is."""
    found: list[v1.HostSample] = []
    request = v1.ListSamplesRequest(agent_id=agent_id, page_size=10_000)
    while True:
        page = stub.ListSamples(request, timeout=PATIENCE_S)
        found += page.samples
        request.page_token = page.next_page_token
        if not request.page_token:
            return sorted(found, key=lambda sample: sample.time_unix_ms)


def the_agent(stub: TelemetryServiceStub, agent_id: str) -> v1.Agent | None:
    """Return an agent with its latest figures."""
    agents = stub.ListAgents(v1.ListAgentsRequest(page_size=100), timeout=PATIENCE_S).agents
    return next((agent for agent in agents if agent.facts.agent_id == agent_id), None)


def until_agent(
    stub: TelemetryServiceStub, agent_id: str, is_so: Callable[[v1.Agent], object]
) -> v1.Agent:
    """Wait until something holds of an agent, and return it."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        agent = the_agent(stub, agent_id)
        if agent is not None and is_so(agent):
            return agent
        if time.monotonic() > give_up_s:
            raise AssertionError(f"it did not come to pass; the agent is\n{agent}")
        time.sleep(0.05)


def gaps(samples: Sequence[v1.HostSample]) -> list[str]:
    """Return where samples do not follow on each other: each tells the time since the one before.

    A lost sample leaves a hole as long as its interval, one that is stored twice an overlap.
    """
    found = []
    for before, after in pairwise(samples):
        apart_s = (after.time_unix_ms - before.time_unix_ms) / 1000
        if abs(apart_s - after.interval_s) > _NEAR_S:
            found.append(f"{apart_s:.2f} s apart, an interval of {after.interval_s:.2f} s")
    return found


def sampled_after(unix_s: float) -> Callable[[v1.Agent], bool]:
    """Return what is so of an agent whose latest sample is younger than a time."""
    return lambda agent: agent.latest_sample.time_unix_ms > unix_s * 1000
