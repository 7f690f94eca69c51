"""Each rule of the controller is switched off in a market made for it: the run gets worse."""

from spotwright.domain.offer import Pool
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.series import Series
from tests.simulator.small_market import hours, job_of, market_of, on_demand, spot
from tests.simulator.steered import scene_of, steered


def test_without_pace_on_demand_nodes_are_bought_though_there_is_time_to_wait() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (2, 0), (4, 1))})
    scene = scene_of(job_of(deadline_hours=30), market_of(), market)

    paced, hasty = steered(scene, market_of()), steered(scene, market_of(), pace=False)

    assert on_demand() not in paced.node_s_by_pool
    assert paced.cost_usd < hasty.cost_usd - 4


def test_without_give_back_on_demand_nodes_are_kept_when_spot_is_back() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 0), (1, 1))})
    scene = scene_of(job_of(deadline_hours=11.5), market_of(), market)

    giving, keeping = steered(scene, market_of()), steered(scene, market_of(), give_back=False)

    assert giving.cost_usd < keeping.cost_usd - 5
    assert not giving.is_late


def test_without_a_safety_net_a_deadline_is_missed() -> None:
    # Saving its state slows the job on spot nodes, and what was not saved goes with the node.
    market = MarketTrace(capacity={spot(): hours((0, 1), (8.9, 0), (8.95, 1))})
    conditions = Conditions(notice_s=0.0, checkpoint_every_s=2500.0)
    job = job_of(deadline_hours=11.2, checkpoint_s=300.0)
    scene = scene_of(job, market_of(), market, conditions=conditions)

    assert not steered(scene, market_of()).is_late
    assert steered(scene, market_of(), safety_net=False).is_late


def test_without_learning_a_pool_that_takes_nodes_away_is_chosen_again() -> None:
    flaky = [(k * 0.35 + d, v) for k in range(120) for d, v in ((0.0, 1.0), (0.3, 0.0))]
    market = MarketTrace(
        capacity={spot("a"): hours(*flaky)},
        prices={spot("b"): hours((0, 1.1))},
    )
    scene = scene_of(job_of(deadline_hours=14), market_of("ab"), market)

    learning = steered(scene, market_of("ab"))
    not_learning = steered(scene, market_of("ab"), learn=False)

    assert learning.losses < not_learning.losses
    assert learning.cost_usd < 0.8 * not_learning.cost_usd


def test_without_cool_down_a_pool_that_refuses_is_asked_in_vain() -> None:
    # The cheaper pool gives a node that never gets to train.
    snatching = [(k * 0.2 + d, v) for k in range(200) for d, v in ((0.0, 1.0), (0.15, 0.0))]
    market = MarketTrace(
        capacity={spot("a"): hours(*snatching)},
        prices={spot("b"): hours((0, 1.2))},
    )
    conditions = Conditions(notice_s=0.0, checkpoint_every_s=10.0, is_probed=False)
    job = job_of(deadline_hours=25)
    scene = scene_of(job, market_of("ab"), market, conditions=conditions)

    cooling = steered(scene, market_of("ab"))
    pestering = steered(scene, market_of("ab"), cool_down=False)

    assert cooling.cost_usd < pestering.cost_usd


def test_without_a_savings_threshold_small_savings_are_chased() -> None:
    market = MarketTrace(prices={spot("a"): _rising(1.0), spot("b"): _rising(1.03, other=True)})
    scene = scene_of(job_of(deadline_hours=25), market_of("ab"), market)

    calm = steered(scene, market_of("ab"))
    chasing = steered(scene, market_of("ab"), savings_threshold=False)

    assert calm.changes < chasing.changes
    assert calm.finish_s is not None
    assert chasing.finish_s is not None
    assert calm.finish_s < chasing.finish_s


def test_without_looking_around_a_pool_that_became_cheaper_is_not_seen() -> None:
    market = MarketTrace(prices={spot("a"): hours((0, 1.0)), spot("b"): hours((0, 1.1), (3, 0.5))})
    scene = scene_of(job_of(deadline_hours=25), market_of("ab"), market)

    looking = steered(scene, market_of("ab"))
    blind = steered(scene, market_of("ab"), look_around_s=1e9)

    assert spot("b") not in blind.node_s_by_pool
    assert looking.cost_usd < blind.cost_usd - 2


def test_without_survivors_kept_a_whole_fleet_moves_for_one_lost_node() -> None:
    source = market_of("ab", server=True)
    pools: dict[Pool, Series] = {spot("a"): hours((0, 4), (8, 3)), spot("b"): hours((0, 0), (2, 4))}
    market = MarketTrace(capacity=pools, prices={spot("b"): hours((0, 0.99))})
    job = job_of(deadline_hours=10.8, nodes=4, asynchronous=True)
    server = {Pool("m5.xlarge", "zone-a", on_demand().market): 1}
    scene = scene_of(job, source, market, servers=server)

    keeping, moving = steered(scene, source), steered(scene, source, keep_survivors=False)

    assert keeping.grants < moving.grants
    assert keeping.cost_usd < moving.cost_usd
    assert keeping.finish_s is not None
    assert moving.finish_s is not None
    assert keeping.finish_s < moving.finish_s


def test_without_saving_on_notice_work_is_lost_with_a_node() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 1), (3, 0), (3.1, 1), (8, 0), (8.1, 1))})
    job = job_of(deadline_hours=30, checkpoint_s=60.0)
    scene = scene_of(job, market_of(), market, conditions=Conditions(notice_s=120.0))

    saving, losing = steered(scene, market_of()), steered(scene, market_of(), save_on_notice=False)

    assert saving.cost_usd < losing.cost_usd


def test_a_pool_that_refused_for_hours_is_used_as_soon_as_it_gives_nodes() -> None:
    market = MarketTrace(capacity={spot(): hours((0, 0), (2.4, 1))})
    conditions = Conditions(notice_s=0.0, checkpoint_every_s=10.0, is_probed=False)
    scene = scene_of(job_of(deadline_hours=20), market_of(), market, conditions=conditions)

    run = steered(scene, market_of())

    assert on_demand() not in run.node_s_by_pool
    assert run.finish_s is not None
    assert run.finish_s < (2.4 + 10.3) * 3600


def test_a_pool_that_gave_nothing_is_no_better_than_one_that_lost_a_node() -> None:
    capacity = {spot("a"): hours((0, 1), (1, 0), (1.1, 1)), spot("b"): hours((0, 0))}
    conditions = Conditions(notice_s=0.0, checkpoint_every_s=10.0, is_probed=False)
    market = MarketTrace(capacity=capacity, prices={spot("b"): hours((0, 0.999))})
    scene = scene_of(job_of(deadline_hours=20), market_of("ab"), market, conditions=conditions)

    run = steered(scene, market_of("ab"))

    # Ten hours of work, two restarts and 300 s in which nothing came, twice.
    assert run.finish_s is not None
    assert run.finish_s < 10.6 * 3600
    assert {*run.node_s_by_pool} == {spot("a")}


def test_without_a_grant_timeout_a_pool_that_gives_nothing_is_waited_for() -> None:
    market = MarketTrace(capacity={spot("a"): hours((0, 0))}, prices={spot("b"): hours((0, 1.2))})
    conditions = Conditions(notice_s=0.0, checkpoint_every_s=10.0, is_probed=False)
    scene = scene_of(job_of(deadline_hours=25), market_of("ab"), market, conditions=conditions)

    heeding = steered(scene, market_of("ab"))
    patient = steered(scene, market_of("ab"), grant_timeout_s=6 * 3600.0)

    assert heeding.finish_s is not None
    assert patient.finish_s is not None
    assert heeding.finish_s < patient.finish_s - 5 * 3600


def test_without_a_look_at_prices_one_that_has_risen_is_paid_until_the_next_look_around() -> None:
    market = MarketTrace(prices={spot("a"): hours((0, 1.0), (3, 2.5)), spot("b"): hours((0, 1.1))})
    scene = scene_of(job_of(deadline_hours=25), market_of("ab"), market)

    heeding = steered(scene, market_of("ab"))
    blind = steered(scene, market_of("ab"), price_change_fraction=1e9)

    assert heeding.cost_usd < blind.cost_usd - 0.5


def _rising(first: float, *, other: bool = False) -> Series:
    """Return a price that is by turns 3 % above and below that of another such pool."""
    points, price = [], 1.0
    for hour in range(12):
        dearer = (hour % 2 == 1) != other
        points.append((float(hour), price * (1.03 if dearer else 1.0)))
        price *= 1.12
    return hours(*points)
