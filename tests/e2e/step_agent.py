"""An agent that sends steps of a known law, and answers a probe with a known result."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Self

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub

PATIENCE_S = 60.0
_INTERVALS_A_BATCH = 90


class StepAgent:
    """One host with an open session."""

    def __init__(self, address: str, agent_id: str, *, job_id: str, **place: str) -> None:
        """Be a host of a job; `place` may tell instance_type, instance_id, zone and market."""
        self._facts = v1.AgentFacts(agent_id=agent_id, boot_id="b", job_id=job_id, **place)
        self._channel = grpc.insecure_channel(address)
        self._sent: queue.Queue[v1.SessionRequest | None] = queue.Queue()
        self._acked = threading.Condition()
        self._last_acked = self._sequence = 0
        self.probe_result: v1.ProbeResult | None = None
        self._thread = threading.Thread(target=self._hear)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sent.put(None)
        self._thread.join(PATIENCE_S)
        self._channel.close()

    def send_steps(self, steps: Iterable[v1.StepSample]) -> None:
        """Send steps, oldest first, and wait until they are stored."""
        batch: list[v1.StepSample] = []
        for step in steps:
            if batch and step.time_unix_ms - batch[0].time_unix_ms > _INTERVALS_A_BATCH * 10_000:
                self._send(v1.Batch(steps=batch))
                batch = []
            batch.append(step)
        self._send(v1.Batch(steps=batch))

    def _send(self, batch: v1.Batch) -> None:
        self._sequence += 1
        batch.sequence, batch.send_time_unix_ms = self._sequence, int(time.time() * 1000)
        self._sent.put(v1.SessionRequest(batch=batch))
        with self._acked:
            assert self._acked.wait_for(lambda: self._last_acked >= batch.sequence, PATIENCE_S)

    def _said(self) -> Iterator[v1.SessionRequest]:
        yield v1.SessionRequest(hello=self._facts)
        while (request := self._sent.get()) is not None:
            yield request

    def _hear(self) -> None:
        for response in TelemetryServiceStub(self._channel).Session(self._said()):
            if response.HasField("ack"):
                with self._acked:
                    self._last_acked = response.ack.sequence
                    self._acked.notify_all()
            elif response.command.WhichOneof("action") == "probe" and self.probe_result:
                result = v1.ProbeResult(
                    command_id=response.command.command_id, peer=response.command.probe.peer
                )
                result.MergeFrom(self.probe_result)
                result.time_unix_ms = int(time.time() * 1000)
                self._sequence += 1
                batch = v1.Batch(
                    sequence=self._sequence,
                    send_time_unix_ms=result.time_unix_ms,
                    probes=[result],
                )
                self._sent.put(v1.SessionRequest(batch=batch))


def steps_of(
    step_s: float, *, start_unix_s: float, end_unix_s: float, **parts: float
) -> Iterator[v1.StepSample]:
    """Return steps of one length, back to back, each with the parts that are given."""
    count = int((end_unix_s - start_unix_s) / step_s)
    for number in range(1, count + 1):
        yield v1.StepSample(
            time_unix_ms=int((start_unix_s + number * step_s) * 1000),
            step=number,
            step_s=step_s,
            **parts,  # type: ignore[arg-type]
        )
