"""The speed of workers that queue, against the performance model, and lines above it."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from spotwright.perfmodel.contention import SharedServer, Station, cluster_speed, waits
from spotwright.planner.queueing_bound import QueueingBound
from tests.planner.dice import Dice

Floats = NDArray[np.float64]

SEEDS = range(40)
ROUNDING = 1e-6  # rows are eased by as much


def queues(seed: int) -> Iterator[tuple[int, list[SharedServer], QueueingBound]]:
    """Yield fleets at a server that they reach over links of three speeds."""
    dice = Dice(seed, 5)
    cpu = Station(visit_s=dice.scale(1e-3, 1), demand_s=dice.scale(1e-4, 1e-2))
    link_s = dice.scale(1e-3, 1)
    servers = [
        SharedServer.of(
            [cpu, Station(visit_s=link_s * times, demand_s=link_s * dice.between(0, 1))],
            most_workers=64,
        )
        for times in (1.0, 1.3, 4.0)
    ]
    for workers in (2, 5, dice.whole(6, 64)):
        yield workers, servers, QueueingBound(servers, workers)


def reachable(workers: int, server: SharedServer, z: float) -> Floats:
    """Return what S can be: no worker steps faster than its visit."""
    most = workers / (server.visit_s + z)
    return np.geomspace(1e-3 * most, most, 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_speeds_are_those_of_the_performance_model(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        for link, server in enumerate(servers):
            lone_s = server.visit_s * np.geomspace(1.0, 100.0, 20)
            model = cluster_speed(np.full(20, float(workers)), lone_s, server)

            speeds = [queue.speed(workers / lone, 0.0, link) for lone in lone_s.tolist()]

            assert speeds == pytest.approx(model, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_links_at_once_are_each_by_itself(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        s = 0.5 * workers / servers[-1].visit_s

        speeds, _ = queue.speeds(s, 0.0, slice(0, 3))

        assert speeds.tolist() == pytest.approx([queue.speed(s, 0.0, link) for link in range(3)])


@pytest.mark.parametrize("seed", SEEDS)
def test_tangents_lie_above_the_speed_everywhere(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        for link, server in enumerate(servers):
            grid = reachable(workers, server, 0.0)
            speeds = np.array([queue.speed(s, 0.0, link) for s in grid.tolist()])
            for s in grid[::-6].tolist():
                (speed,), (slope,) = queue.speeds(s, 0.0, slice(link, link + 1))

                assert (speed + slope * (grid - s) >= speeds - ROUNDING * speed).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_tangents_lie_above_the_speed_of_crowded_servers(seed: int) -> None:
    """With a wait, from where S is the full server's rate on."""
    for workers, servers, queue in queues(seed):
        for link, server in enumerate(servers):
            z = Dice(seed, workers).scale(0.01, 10) * server.visit_s
            grid = reachable(workers, server, z)
            grid = grid[grid >= queue.capacity[link]]
            speeds = np.array([queue.speed(s, z, link) for s in grid.tolist()])
            for s in grid[::-6].tolist():
                (speed,), (slope,) = queue.speeds(s, z, slice(link, link + 1))

                assert (speed + slope * (grid - s) >= speeds - ROUNDING * speed).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tangent_has_the_slope_of_the_speed(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        s = 0.3 * workers / servers[0].visit_s
        near = [queue.speed(s * (1 + step), 0.0, 0) for step in (-1e-5, 1e-5)]

        _, (slope,) = queue.speeds(s, 0.0, slice(0, 1))

        assert slope == pytest.approx((near[1] - near[0]) / (2e-5 * s), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_speed_is_beyond_a_server_that_never_idles(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        for link, server in enumerate(servers):
            for s in reachable(workers, server, 0.0).tolist():
                assert queue.speed(s, 0.0, link) <= queue.capacity[link] * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_waits_are_those_of_the_performance_model(seed: int) -> None:
    for workers, servers, queue in queues(seed):
        lone_s = servers[1].visit_s * np.array([1.01, 2.0, 5.0])
        kinds = np.random.default_rng(seed).integers(0, 3, workers)
        x = np.bincount(kinds, minlength=3).astype(np.float64)
        (model,) = waits(x[:, None], lone_s, servers[1])

        wait, full = queue.waits(x, lone_s, 1)

        assert wait == pytest.approx(float(model), rel=1e-2, abs=1e-3 * servers[1].visit_s)
        rate = float((x / (lone_s + full)).sum())
        assert rate <= queue.capacity[1] * (1 + 1e-6)
        assert full == pytest.approx(0.0) or rate == pytest.approx(float(queue.capacity[1]))
