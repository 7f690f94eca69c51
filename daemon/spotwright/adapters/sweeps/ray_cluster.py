"""Runs tasks on a Ray cluster: for sweeps beyond one machine.

Spotwright must be installed on the nodes of the cluster as it is here.
"""

import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from spotwright.domain.errors import OutsideWorldError

Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 4  # tasks that are under way at once, for each CPU of the cluster
_ANSWER_S = 10.0  # Ray itself would ask for minutes


class RayCluster:
    """Spreads tasks over a cluster. `ray` is the module: it is imported where it is wanted only."""

    def __init__(self, ray: Any, *, address: str) -> None:
        """Connect to a cluster; `local` starts one on this machine.

        Raises:
            OutsideWorldError: there is none at this address.
        """
        self._ray = ray
        try:
            _require_listener(address)
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level="ERROR",
                include_dashboard=False if address == "local" else None,
                ignore_reinit_error=True,
            )
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise OutsideWorldError(f"no Ray cluster at {address}: {error}") from error

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Return what the function gives for each task, in their order."""
        remote = self._ray.remote(_called)  # Ray takes no built-in functions
        most = _AHEAD * max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        waiting = [remote.remote(function, task) for task in tasks[:most]]
        for place in range(len(tasks)):
            if most + place < len(tasks):
                waiting.append(remote.remote(function, tasks[most + place]))
            yield self._got(waiting[place])

    def _got(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            told = f"{type(cause).__name__}: {cause}"
            raise OutsideWorldError(f"a task on the Ray cluster failed: {told}") from error
        except self._ray.exceptions.RayError as error:
            raise OutsideWorldError(f"the Ray cluster failed: {error}") from error

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()


def _called(function: Callable[[Task], Result], task: Task) -> Result:
    return function(task)


def _require_listener(address: str) -> None:
    """Raise OSError where a named host and port do not answer."""
    named = urlsplit(address if "://" in address else f"//{address}")
    if named.hostname is not None and named.port is not None:
        socket.create_connection((named.hostname, named.port), timeout=_ANSWER_S).close()
