"""The job files that ship with the project, and one as small as a job file can be."""

from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
JOB_FILES = sorted(EXAMPLES.rglob("*.yaml"))

SMALL = """\
name: small
workload:
  strategy: asp-ps
  model:
    parameter_size: 10 MB
  batch: {per_gpu: 64}
  compute:
    T4: {step: 1 s, batch: 64}
goal:
  steps: 100
  deadline: 4h
limits:
  max_nodes: 8
"""
