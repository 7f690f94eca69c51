"""Tasks on a Ray cluster: the order of what is submitted, and the real thing where it is there."""

import importlib
import importlib.util
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from spotwright.adapters.sweeps.ray_cluster import RayCluster
from spotwright.domain.errors import OutsideWorldError
from tests.outside_tools import require


class _RayError(Exception):
    pass


class _ClusterInMemory:
    """Stands for Ray: a task is run when its result is asked for."""

    exceptions = SimpleNamespace(RayError=_RayError)

    def __init__(self, *, reachable: bool = True) -> None:
        self._reachable = reachable
        self.under_way, self.most_under_way, self.address = 0, 0, "never asked"

    def init(self, *, address: str, **_: object) -> None:
        if not self._reachable:
            raise ConnectionError("nobody listens")
        self.address = address

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, function: Callable[[Any], Any]) -> Any:
        def submit(task: Any) -> Callable[[], Any]:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            return lambda: function(task)

        return SimpleNamespace(remote=submit)

    def get(self, reference: Callable[[], Any]) -> Any:
        self.under_way -= 1
        try:
            return reference()
        except ZeroDivisionError as error:
            raise _RayError(str(error)) from error

    def shutdown(self) -> None:
        self.address = "left"


def test_results_come_in_the_order_of_their_tasks() -> None:
    ray = _ClusterInMemory()

    found = list(RayCluster(ray, address="head:6379").map(lambda n: n * n, list(range(40))))

    assert found == [n * n for n in range(40)]
    assert ray.most_under_way <= 4 * 2 + 1


def test_a_task_that_fails_and_a_cluster_that_is_not_there_say_so() -> None:
    with pytest.raises(OutsideWorldError, match="no Ray cluster at head:6379"):
        RayCluster(_ClusterInMemory(reachable=False), address="head:6379")
    cluster = RayCluster(_ClusterInMemory(), address="head:6379")
    with pytest.raises(OutsideWorldError, match="the Ray cluster failed"):
        list(cluster.map(lambda n: 1 // n, [0]))


@pytest.mark.soak
def test_a_real_cluster_on_this_machine_gives_the_same() -> None:
    require(importlib.util.find_spec("ray"), "ray is not installed (extra `ray`)")
    cluster = RayCluster(importlib.import_module("ray"), address="local")
    try:
        assert list(cluster.map(abs, [-1, 2, -3])) == [1, 2, 3]
    finally:
        cluster.close()
