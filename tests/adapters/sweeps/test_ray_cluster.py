"""Tasks on a Ray cluster of this machine, and clusters that are not there."""

import importlib
import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest

from spotwright.adapters.sweeps.ray_cluster import RayCluster
from spotwright.domain.errors import OutsideWorldError
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import InThisProcess, run_study
from tests.outside_tools import require
from tests.ports import stable_port
from tests.simulator.small_study import small_study


@pytest.fixture(scope="module")
def ray() -> Any:
    require(importlib.util.find_spec("ray"), "ray is not installed (extra `ray`)")
    return importlib.import_module("ray")


@pytest.fixture(scope="module")
def cluster(ray: Any) -> Iterator[RayCluster]:
    cluster = RayCluster(ray, address="local")
    yield cluster
    cluster.close()


def _process_and_square(number: int) -> tuple[int, int]:
    return os.getpid(), number * number


def test_results_come_in_the_order_of_their_tasks_from_other_processes(cluster: RayCluster) -> None:
    found = list(cluster.map(_process_and_square, range(60)))  # more than are under way at once

    assert [square for _, square in found] == [n * n for n in range(60)]
    assert os.getpid() not in {process for process, _ in found}


def test_built_in_functions_are_functions(cluster: RayCluster) -> None:
    assert list(cluster.map(abs, [-1, 2, -3])) == [1, 2, 3]
    assert list(cluster.map(abs, [])) == []


def test_a_task_that_fails_says_why(cluster: RayCluster) -> None:
    with pytest.raises(OutsideWorldError) as caught:
        list(cluster.map(int, ["a"]))

    assert str(caught.value) == (
        "a task on the Ray cluster failed: ValueError: invalid literal for int() with base 10: 'a'"
    )


def test_a_study_gives_what_it_gives_in_one_process(cluster: RayCluster) -> None:
    policies = [PolicyName.GREEDY, PolicyName.OURS]

    here = run_study(small_study(), policies, runs=3, spread=InThisProcess(), block_runs=2)
    there = run_study(small_study(), policies, runs=3, spread=cluster, block_runs=2)

    assert here == there


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_at_which_nobody_listens_is_told_at_once(ray: Any, scheme: str) -> None:
    address = f"{scheme}127.0.0.1:{stable_port()}"

    with pytest.raises(OutsideWorldError, match=f"no Ray cluster at {address}: .*refused"):
        RayCluster(ray, address=address)


def test_an_address_that_is_none_is_refused(ray: Any) -> None:
    with pytest.raises(OutsideWorldError, match="no Ray cluster at head:six"):
        RayCluster(ray, address="head:six")
