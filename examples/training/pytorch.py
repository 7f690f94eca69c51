"""Report steps from a PyTorch loop: `python examples/training/pytorch.py`."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from spotwright_agent.training import StepReporter
from spotwright_agent.training.torch_hook import report_steps, timed_batches

reporter = StepReporter()
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
report_steps(optimizer, reporter, samples_per_step=4, model=model)
for (inputs,) in timed_batches(DataLoader(TensorDataset(torch.randn(64, 8)), 4), reporter):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
reporter.close()
print(f"16 steps, {reporter.dropped} of them not told. {reporter.problem}")
