"""How long the event loop was held up."""

import asyncio
import time

from spotwright.adapters.metrics.loop_lag import LoopLag


def test_a_blocked_loop_is_noticed() -> None:
    lag = LoopLag()

    async def block() -> None:
        watching = asyncio.create_task(lag.watch())
        await asyncio.sleep(0.01)
        time.sleep(0.2)
        await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(block())

    assert 0.1 <= lag.largest_s() < 5.0


def test_the_longest_delay_is_told_until_the_period_after_its_own_is_over() -> None:
    clock_s = [0.0]
    lag = LoopLag(period_s=30.0, clock=lambda: clock_s[0])
    told = []
    for now_s, late_s in ((1.0, 0.2), (2.0, 0.1), (31.0, 0.01), (59.0, 0.02), (62.0, 0.0)):
        clock_s[0] = now_s
        lag.note(late_s)
        told.append(lag.largest_s())

    assert told == [0.2, 0.2, 0.2, 0.2, 0.02]
