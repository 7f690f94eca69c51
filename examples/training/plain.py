"""Report steps from a plain Python loop: `python examples/training/plain.py`."""

import time

from spotwright_agent.training import StepReporter

reporter = StepReporter()
for step in range(5):
    with reporter.data_wait():
        time.sleep(0.01)
    time.sleep(0.05)
    reporter.step(step, samples=32, loss=1 / (step + 1))
    if reason := reporter.should_save():
        print(f"{reason.kind}: {reason.seconds_left} s left; save now")
reporter.close()
print(f"5 steps, {reporter.dropped} of them not told. {reporter.problem}")
