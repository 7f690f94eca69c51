"""Hundreds of workers at one server, against the exact product form in logarithms."""

from collections.abc import Sequence

import numpy as np
import pytest

from spotwright.perfmodel.contention import SharedServer, Station, cluster_speed, waits
from tests.perfmodel.example_clusters import Floats

CHAINS = [
    [Station(visit_s=0.02, demand_s=0.02)],
    [Station(visit_s=0.4, demand_s=0.004)],
    [Station(visit_s=0.1, demand_s=0.003), Station(visit_s=0.02, demand_s=0.002)],
]


def log_product(first: Floats, second: Floats) -> Floats:
    """Return the logarithms of the coefficients of a product of two polynomials, given theirs."""
    sums = [np.logaddexp.reduce(first[: n + 1] + second[n::-1]) for n in range(len(first))]
    return np.array(sums)


def log_factorials(count: int) -> Floats:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))


def log_present(chain: Sequence[Station], count: int) -> Floats:
    """Return the weight of n workers in the chain: at one station, prod_k 1 / rate(k)."""
    present = np.arange(1, count + 1)
    whole = np.concatenate(([0.0], np.full(count, -np.inf)))
    for station in chain:
        rates = np.minimum(present / station.visit_s, 1 / station.demand_s)
        whole = log_product(whole, np.concatenate(([0.0], -np.cumsum(np.log(rates)))))
    return whole


def exact_equal_speed(chain: Sequence[Station], workers: int, think_s: float) -> float:
    """Return G(N - 1) / G(N) of the closed network."""
    thinking = np.arange(workers + 1) * np.log(think_s) - log_factorials(workers)
    constants = log_product(log_present(chain, workers), thinking)
    return float(np.exp(constants[-2] - constants[-1]))


def exact_class_speeds(
    chain: Sequence[Station], counts: Sequence[int], think_s: Sequence[float]
) -> Floats:
    """Return the speed of one worker of each class.

    G is the sum over k of k! * present(k) * e_k, where e_k, the elementary symmetric polynomial
    of 1 / think, chooses who is present; a worker's speed is G without it / (think * G).
    """
    weights = log_present(chain, sum(counts)) + log_factorials(sum(counts))

    def log_constant(members: Sequence[int]) -> float:
        chosen = np.concatenate(([0.0], np.full(sum(counts), -np.inf)))
        for think in np.repeat(think_s, members):
            with_one_more = np.concatenate(([-np.inf], chosen[:-1])) - np.log(think)
            chosen = np.logaddexp(chosen, with_one_more)
        return float(np.logaddexp.reduce(weights + chosen))

    fewer = [[n - (i == j) for j, n in enumerate(counts)] for i in range(len(counts))]
    without = np.array([log_constant(members) for members in fewer])
    return np.asarray(np.exp(without - log_constant(counts)) / np.array(think_s))


@pytest.mark.soak
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("workers", [64, 256, 512])
@pytest.mark.parametrize("think_s", [0.05, 1.0, 20.0])
def test_hundreds_of_equal_workers_are_as_fast_as_the_product_form_says(
    chain: list[Station], workers: int, think_s: float
) -> None:
    server = SharedServer.of(chain, most_workers=workers)
    lone_s = np.array([think_s + server.visit_s])

    speed = float(cluster_speed(np.array([float(workers)]), lone_s, server)[0])

    assert speed == pytest.approx(exact_equal_speed(chain, workers, think_s), rel=1e-6)


@pytest.mark.soak
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_hundreds_of_unequal_workers_are_close_to_the_product_form(
    chain: list[Station], scale: float
) -> None:
    counts, think_s = [128, 64, 48, 16], [0.2 * scale, 0.5 * scale, 1.0 * scale, 3.0 * scale]
    server = SharedServer.of(chain, most_workers=sum(counts))
    lone_s = np.array(think_s) + server.visit_s

    found = 1 / (lone_s + waits(np.array(counts, float)[:, None], lone_s, server))

    exact = exact_class_speeds(chain, counts, think_s)
    assert np.array(counts) @ found == pytest.approx(np.array(counts) @ exact, rel=0.02)
    assert found == pytest.approx(exact, rel=0.15)
