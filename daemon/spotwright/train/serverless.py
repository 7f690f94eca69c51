"""A worker as an AWS Lambda function, which has minutes and trains for hours.

    handler = lambda_handler("script.py", ServerlessSettings(servers=("10.0.0.5:7600",), ...))

Each invocation trains until there is no time for another step and the margin, pushes its last
update, keeps where it was in its data, and leaves; the next one goes on from there. What it returns
tells whoever invokes it whether to do so again: `is_over`.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from spotwright.domain.errors import BadInputError, TrainingOverError
from spotwright.train.checkpoint_places import open_place
from spotwright.train.script import Task, load_task
from spotwright.train.training_loop import TrainingLoop
from spotwright.train.worker import Worker

MARGIN_S = 30.0


class LambdaContext(Protocol):
    """What AWS gives a handler."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long this invocation may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerlessSettings:
    """What functions of one job have in common."""

    servers: tuple[str, ...]
    positions: str  # a folder or s3://BUCKET/KEY, where each worker keeps how far it is
    batch: int = 32
    tls_dir: Path | None = None
    margin_s: float = MARGIN_S  # between the last step and the timeout
    patience_s: float = 20.0  # for a server that is away; shorter than the margin

    def __post_init__(self) -> None:
        if self.margin_s < 0 or self.patience_s <= 0:
            raise BadInputError("margin_s counts from 0, and patience_s is positive")


def lambda_handler(
    script: str, settings: ServerlessSettings
) -> Callable[[Mapping[str, Any], LambdaContext], dict[str, Any]]:
    """Return the handler of a function; its event names the worker: {"worker": "f3"}."""

    def handle(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        name = event.get("worker")
        if not isinstance(name, str) or not name:
            raise BadInputError('the event names no worker; invoke with {"worker": "f0"}')
        return _invocation(load_task(script), settings, name=name, context=context)

    return handle


def _invocation(
    task: Task, settings: ServerlessSettings, *, name: str, context: LambdaContext
) -> dict[str, Any]:
    place, document = open_place(settings.positions), f"worker-{name}.json"
    position = _read_position(place.read(document))
    worker = Worker(
        task.model,
        settings.servers,
        name=name,
        tls_dir=settings.tls_dir,
        patience_s=settings.patience_s,
    )
    clock = _Clock(context, settings.margin_s)
    loop = TrainingLoop(task, worker, batch=settings.batch, stops=clock.is_time_up)
    loop.skip(position)
    try:
        with worker:
            done = loop.run()
            position += done.steps
            place.write(document, [memoryview(json.dumps({"position": position}).encode())])
    except TrainingOverError:
        done = loop.result("late")
    return {
        "worker": name,
        "steps": done.steps,
        "position": position,
        "last_loss": done.last_loss,
        "is_over": worker.is_over,
    }


class _Clock:
    """Tells when there is no time for another step as long as the longest so far."""

    def __init__(self, context: LambdaContext, margin_s: float) -> None:
        self._context, self._margin_s = context, margin_s
        self._longest_s, self._asked_s = 0.0, time.monotonic()
        self._is_first = True

    def is_time_up(self) -> bool:
        """Return whether to end now; asked before each step."""
        now_s = time.monotonic()
        if not self._is_first:
            self._longest_s = max(self._longest_s, now_s - self._asked_s)
        self._is_first, self._asked_s = False, now_s
        left_s = self._context.get_remaining_time_in_millis() / 1000
        return left_s < self._margin_s + self._longest_s


def _read_position(document: bytes | None) -> int:
    return 0 if document is None else int(json.loads(document)["position"])
