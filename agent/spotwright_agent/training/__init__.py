"""What a training process tells the agent on its host: a step, and what it is warned of.

    reporter = StepReporter()
    for step, batch in enumerate(loader):
        loss = train(batch)
        reporter.step(step, samples=len(batch))

Only the standard library is needed, and nothing happens where there is no agent.
"""

from spotwright_agent.training.reporter import StepReporter
from spotwright_agent.training.warning import TrainingWarning

__all__ = ["StepReporter", "TrainingWarning"]
