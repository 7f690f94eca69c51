"""Report steps from a plain Python loop: `python examples/training/plain.py`."""

import time

from spotwright_agent.training import StepReporter

reporter = StepReporter()
for step in range(5):
    with reporter.data_wait():
        time.sleep(0.01)
    time.sleep(0.05)
    reporter.step(step, samples=32, loss=1 / (step + 1))
    warning = reporter.warning()
    if warning is not None and warning.kind != "withdrawn":
        print(f"{warning.kind}: {warning.seconds_left} s left; save now")
reporter.close()
print(f"5 steps, {reporter.dropped} of them not told. {reporter.problem}")
