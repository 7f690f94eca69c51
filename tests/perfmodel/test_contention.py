"""Oracles: the stationary Markov chain, Erlang's loss formula, exact mean values, a simulation."""

import heapq
import math
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.perfmodel.contention import (
    SharedServer,
    Station,
    cluster_speed,
    spotdnn_bandwidth_mbps,
    waits,
)
from tests.perfmodel.example_clusters import Floats

Pair = tuple[float, float]  # visit_s, demand_s
CHAINS: list[list[Pair]] = [
    [(0.3, 0.3)],
    [(0.4, 0.1)],
    [(0.3, 0.3), (0.2, 0.1)],
    [(0.05, 0.02), (0.4, 0.13), (0.1, 0.1)],
]
pairs = st.tuples(st.floats(0.01, 1.0), st.floats(0.05, 1.0)).map(lambda p: (p[0], p[0] * p[1]))
chains = st.lists(pairs, min_size=1, max_size=3)
thinks = st.floats(0.05, 5.0)  # a hundred times apart


def folded(chain: Sequence[Pair], most_workers: int = 40) -> SharedServer:
    stations = [Station(visit_s=visit, demand_s=demand) for visit, demand in chain]
    return SharedServer.of(stations, most_workers=most_workers)


def equal_speed(chain: Sequence[Pair], workers: int, think_s: float) -> float:
    server = folded(chain, max(workers, 1))
    lone_s = np.array([think_s + server.visit_s])
    return float(cluster_speed(np.array([float(workers)]), lone_s, server)[0])


def worker_speeds(chain: Sequence[Pair], think_s: Sequence[float], counts: Sequence[int]) -> Floats:
    """Return the speed of one worker of each class."""
    server = folded(chain, max(sum(counts), 1))
    lone_s = np.array(think_s) + server.visit_s
    wait = waits(np.array(counts, float)[:, None], lone_s, server)
    return np.asarray(1 / (lone_s + wait))


def total_speed(chain: Sequence[Pair], think_s: Sequence[float], counts: Sequence[int]) -> float:
    return float((np.array(counts) * worker_speeds(chain, think_s, counts)).sum())


def markov_speeds(chain: Sequence[Pair], think_s: Sequence[float]) -> Floats:
    """Solve the Markov chain over where every single worker is; place 0 is thinking."""
    places, workers = len(chain) + 1, len(think_s)
    states = list(product(range(places), repeat=workers))
    index = {state: i for i, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for state, worker in product(states, range(workers)):
        place = state[worker]
        present = state.count(place)
        visit, demand = chain[place - 1]
        rate = 1 / think_s[worker] if place == 0 else min(present / visit, 1 / demand) / present
        after = (*state[:worker], (place + 1) % places, *state[worker + 1 :])
        flow[index[after], index[state]] += rate
        flow[index[state], index[state]] -= rate
    flow[0] = 1.0  # replaces one balance equation: probabilities add up to one
    share = np.linalg.solve(flow, np.eye(len(states))[0])
    idle = np.array([[state[w] == 0 for state in states] for w in range(workers)])
    return np.asarray(idle @ share / np.array(think_s))


def exact_speeds(rates: Floats, think_s: Sequence[float]) -> Floats:
    """Return the product-form solution: elementary symmetric polynomials of 1 / think."""
    weights = np.concatenate(([1.0], np.cumprod(np.arange(1, len(think_s) + 1) / rates)))

    def constant(thinks_s: Sequence[float]) -> float:
        polynomial = np.poly(-1 / np.array(thinks_s))
        return float(weights[: len(polynomial)] @ polynomial)

    rest = [[*think_s[:i], *think_s[i + 1 :]] for i in range(len(think_s))]
    whole = constant(think_s)
    return np.array([constant(r) / z / whole for r, z in zip(rest, think_s, strict=True)])


def simulated_speed(think_s: Sequence[float], station: Pair, *, jitter: float) -> float:
    """Simulate one fairly shared station: constant work, compute times even around their mean."""
    visit_s, demand_s = station
    random, until_s = np.random.default_rng(3), 4000.0
    remaining: dict[int, float] = {}  # work of those present, in seconds of a lone visit
    arrivals = [(0.37 * think * i, i) for i, think in enumerate(think_s)]
    heapq.heapify(arrivals)
    now, done, warm_up = 0.0, 0, until_s / 10
    while now < until_s:
        pace = min(1.0, visit_s / demand_s / len(remaining)) if remaining else 1.0
        finish = now + min(remaining.values()) / pace if remaining else math.inf
        arrival = arrivals[0][0] if arrivals else math.inf
        step = min(finish, arrival) - now
        remaining = {worker: left - step * pace for worker, left in remaining.items()}
        now += step
        if arrival <= finish:
            remaining[heapq.heappop(arrivals)[1]] = visit_s
        for worker in [w for w, left in remaining.items() if left <= 1e-12]:
            del remaining[worker]
            thinks_s = think_s[worker] * random.uniform(1 - jitter, 1 + jitter)
            heapq.heappush(arrivals, (now + thinks_s, worker))
            done += now > warm_up
    return done / (now - warm_up)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("think_s", [0.05, 0.5, 3.0])
def test_equal_workers_are_as_fast_as_the_markov_chain_says(
    chain: list[Pair], workers: int, think_s: float
) -> None:
    exact = markov_speeds(chain, [think_s] * workers).sum()

    assert equal_speed(chain, workers, think_s) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("chain", CHAINS[:3])
def test_the_product_form_of_unequal_workers_is_the_markov_chain(chain: list[Pair]) -> None:
    think_s = [0.05, 0.4, 0.4, 3.0]

    exact = exact_speeds(folded(chain, 4).rates, think_s)

    assert exact == pytest.approx(markov_speeds(chain, think_s), rel=1e-9)


@pytest.mark.parametrize("workers", [2, 4, 10, 30])
def test_unequal_workers_are_close_to_the_product_form(workers: int) -> None:
    random, totals, singles = np.random.default_rng(workers), [], []
    for _ in range(40):
        visits = random.uniform(0.02, 0.5, 3) / max(1, workers / 10)
        chain = [(visit, visit * random.uniform(0.1, 1)) for visit in visits]
        think_s = list(random.uniform(0.1, 1, workers) * random.choice([0.1, 1, 3], workers))
        exact = exact_speeds(folded(chain, workers).rates, think_s)
        found = worker_speeds(chain, think_s, [1] * workers)
        totals.append(abs(found.sum() / exact.sum() - 1))
        singles.append(np.abs(found / exact - 1).max())

    assert np.mean(totals) < 0.005
    assert max(totals) < 0.04
    assert max(singles) < 0.15


@pytest.mark.parametrize("workers", [1, 2, 5, 40])
@pytest.mark.parametrize("think_s", [0.1, 1.0, 30.0])
def test_one_whole_server_is_the_machine_repair_model_of_erlang(
    workers: int, think_s: float
) -> None:
    demand_s = 0.2
    blocked = 1.0  # Erlang B by its recurrence, with think / demand erlangs and k lines
    for k in range(1, workers + 1):
        offered = think_s / demand_s * blocked
        blocked = offered / (k + offered)

    speed = equal_speed([(demand_s, demand_s)], workers, think_s)

    assert speed == pytest.approx((1 - blocked) / demand_s, rel=1e-9)


@pytest.mark.parametrize("demands", [[0.2], [0.2, 0.2], [0.3, 0.05, 0.1]])
def test_whole_servers_in_a_chain_are_exact_mean_value_analysis(demands: list[float]) -> None:
    think_s, queues, speed = 0.7, np.zeros(len(demands)), 0.0
    for workers in range(1, 25):
        residences = np.array(demands) * (1 + queues)
        speed = workers / (think_s + residences.sum())
        queues = speed * residences

        found = equal_speed([(demand, demand) for demand in demands], workers, think_s)

        assert found == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize("station", [(0.2, 0.1), (0.3, 0.1), (0.2, 0.2)])
@pytest.mark.parametrize("think_s", [[1.0] * 8, [1.0, 1.3, 0.7, 2.9, 1.9, 0.83], [0.5] * 4])
def test_the_distribution_of_compute_times_does_not_matter(
    think_s: list[float], station: Pair
) -> None:
    simulated = simulated_speed(think_s, station, jitter=0.8)

    found = total_speed([station], think_s, [1] * len(think_s))

    assert found == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize("station", [(0.2, 0.1), (0.3, 0.1), (0.2, 0.2)])
def test_workers_in_lockstep_avoid_each_other_and_gain_at_most_a_fifth(station: Pair) -> None:
    simulated = simulated_speed([0.5] * 4, station, jitter=0.0)

    assert 0.8 * simulated < total_speed([station], [0.5] * 4, [1] * 4) < 1.01 * simulated


@pytest.mark.parametrize("present", [1, 2, 3, 8])
def test_two_links_in_step_serve_between_chance_and_never_meeting(present: int) -> None:
    link = Station(visit_s=0.2, demand_s=0.2)

    rates = SharedServer.of([link, link], most_workers=8, in_step=True).rates

    by_chance = present / (present + 1) / 0.2  # of equal stations, in closed form
    never_meeting = min(present / 0.4, 1 / 0.2)
    assert rates[present - 1] == pytest.approx(math.sqrt(by_chance * never_meeting))


def test_a_single_station_has_no_step_to_fall_into() -> None:
    station = [Station(visit_s=0.3, demand_s=0.1)]

    in_step = SharedServer.of(station, most_workers=8, in_step=True)

    assert in_step.rates == pytest.approx(SharedServer.of(station, most_workers=8).rates)


@given(chain=chains, think_s=thinks, workers=st.integers(1, 40))
def test_no_cluster_beats_its_workers_or_its_server(
    chain: list[Pair], think_s: float, workers: int
) -> None:
    lone_s = think_s + sum(visit for visit, _ in chain)

    speed = equal_speed(chain, workers, think_s)

    assert speed <= workers / lone_s * (1 + 1e-9)
    assert speed <= 1 / max(demand for _, demand in chain) * (1 + 1e-9)


@given(
    chain=chains,
    mix=st.lists(st.tuples(thinks, st.integers(0, 12)), min_size=2, max_size=4),
)
def test_no_mixed_cluster_beats_its_workers_or_its_server(
    chain: list[Pair], mix: list[tuple[float, int]]
) -> None:
    think_s, counts = [think for think, _ in mix], [1 + mix[0][1], *(n for _, n in mix[1:])]
    visit_s = sum(visit for visit, _ in chain)

    speed = total_speed(chain, think_s, counts)

    alone = sum(n / (think + visit_s) for think, n in zip(think_s, counts, strict=True))
    assert speed <= min(alone, 1 / max(demand for _, demand in chain)) * (1 + 1e-6)


@given(chain=chains, think_s=thinks, workers=st.integers(1, 39))
def test_one_more_equal_worker_never_slows_the_cluster(
    chain: list[Pair], think_s: float, workers: int
) -> None:
    fewer, more = (equal_speed(chain, n, think_s) for n in (workers, workers + 1))

    assert more >= fewer * (1 - 1e-9)


@given(
    chain=chains,
    mix=st.lists(st.tuples(thinks, st.integers(1, 9)), min_size=2, max_size=4),
)
def test_one_more_worker_slows_a_mixed_cluster_by_at_most_a_hundredth(
    chain: list[Pair], mix: list[tuple[float, int]]
) -> None:
    think_s, counts = [think for think, _ in mix], [n for _, n in mix]

    more = total_speed(chain, think_s, [counts[0] + 1, *counts[1:]])

    assert more >= total_speed(chain, think_s, counts) * 0.99


@given(chain=chains, think_s=st.floats(1e-6, 100))
def test_a_worker_alone_waits_for_nobody(chain: list[Pair], think_s: float) -> None:
    lone_s = think_s + sum(visit for visit, _ in chain)

    assert equal_speed(chain, 1, think_s) == pytest.approx(1 / lone_s, rel=1e-7)
    assert worker_speeds(chain, [think_s], [1])[0] == pytest.approx(1 / lone_s, rel=1e-7)


@given(chain=chains, think_s=thinks, a=st.integers(1, 9), b=st.integers(1, 9))
def test_two_classes_of_equal_workers_are_one_class(
    chain: list[Pair], think_s: float, a: int, b: int
) -> None:
    apart = total_speed(chain, [think_s, think_s], [a, b])

    assert apart == pytest.approx(total_speed(chain, [think_s], [a + b]), rel=1e-9)
    assert apart == pytest.approx(equal_speed(chain, a + b, think_s), rel=1e-9)


@given(chain=chains, think_s=st.tuples(thinks, thinks, thinks))
def test_the_order_of_classes_and_of_stations_does_not_matter(
    chain: list[Pair], think_s: tuple[float, float, float]
) -> None:
    speeds = [
        total_speed(stations, [think_s[i] for i in order], [i + 1 for i in order])
        for order in permutations(range(3))
        for stations in (chain, chain[::-1])
    ]

    assert speeds == pytest.approx([speeds[0]] * len(speeds), rel=1e-9)


@pytest.mark.parametrize("think_s", [0.0, 1e-12, 1e-3, 1e3])
@pytest.mark.parametrize("visit_s", [1e-3, 1.0, 10.0])
def test_hundreds_of_workers_do_not_overflow(think_s: float, visit_s: float) -> None:
    chain = [(visit_s, 1e-3), (visit_s, 1e-3), (visit_s, 1e-3)]  # up to 10,000 times faster

    speed = equal_speed(chain, 256, think_s)

    most = min(256 / (think_s + 3 * visit_s), 1e3)
    assert 0.4 * most < speed <= most * (1 + 1e-6)


def test_a_server_that_takes_no_time_makes_nobody_wait() -> None:
    server = SharedServer.of([Station(visit_s=0.0, demand_s=0.0)], most_workers=8)

    assert waits(np.array([[8.0]]), np.array([0.5]), server) == 0.0


@pytest.mark.parametrize(
    ("workers", "expected_mb_per_s"),
    [
        (1, 620.0),  # 620 <= 1200 / 1
        (2, 0.0828427 * 600 + 0.9171573 * 620),  # P = 0.2 * 1.4142136 - 0.2
        (8, 448.128),  # P = 0.2 * 2.8284271 - 0.2 = 0.3656854; 0.3656854 * 150 + 0.6343146 * 620
        (36, 1200 / 36),  # P = 1
        (100, 12.0),  # P would be 1.8
    ],
)
def test_the_bandwidth_of_a_worker_is_the_papers(workers: int, expected_mb_per_s: float) -> None:
    found = spotdnn_bandwidth_mbps(
        np.array([float(workers)]),
        requested_mbps=620 * 8,
        server_mbps=1200 * 8,
        slope=0.2,
        offset=-0.2,
    )

    assert found[0] / 8 == pytest.approx(expected_mb_per_s, abs=5e-4)
