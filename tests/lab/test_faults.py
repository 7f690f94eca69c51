"""Short runs with faults, as people call them: what is lost, and what goes on."""

from pathlib import Path

import pytest

from tests.lab.laboratory_command import left_behind, require_rights, run_lab

_COMMON = """\
  model: {size: 1 MB}
  batch: 16
  workers: [{count: 3, device: fast, link: 200 Mbit/s}]
"""
LOST = f"""\
lost-workers:
  strategy: asp-ps
{_COMMON}  servers: {{count: 1, link: 200 Mbit/s}}
  faults: [{{at: 2s, kill: [w1, w2]}}, {{at: 4s, start: [w1]}}]
  steps: 110
"""
KILLED = f"""\
server-killed-bsp-two:
  strategy: bsp-ps
{_COMMON}  servers: {{count: 2, link: 200 Mbit/s}}
  faults: [{{at: 2s, kill: [s1]}}, {{at: 2500 ms, start: [s1]}}]
  checkpoint: 5
  steps: 25
"""
CUT = f"""\
worker-cut:
  strategy: asp-ps
{_COMMON}  servers: {{count: 1, link: 200 Mbit/s}}
  faults: [{{at: 2s, cut: [w1]}}, {{at: 4s, mend: [w1]}}]
  steps: 150
link-slowed:
  strategy: asp-ps
{_COMMON}  servers: {{count: 1, link: 200 Mbit/s}}
  faults: [{{at: 3s, link: [w1], to: 20 Mbit/s}}]
  steps: 120
"""
MET = (  # what holds however slow the machine is
    "acknowledged updates that the server does not have",
    "updates counted twice",
    "server-killed-bsp-two: rounds lost of",
    "server-killed-bsp-two: rounds in the end",
    "its first update, after 2 s without a cable",
    "its updates that were counted: in order, and each once",
    "acknowledged updates of all that the server does not have",
)
TOLD = (
    "longest time without an update, from when 2 were killed",
    "mean loss before, between and after the changes",
    "1 workers, soon after that",
    "2 workers, with their speed measured",
    "link-slowed: before",
    "link-slowed: w1 at 20 Mbit/s",
)


@pytest.mark.timeout(400)
def test_what_faults_cost_is_told_and_no_acknowledged_update_is_lost(tmp_path: Path) -> None:
    require_rights()
    faults = tmp_path / "faults"
    faults.mkdir()
    (tmp_path / "one.yaml").write_text(LOST.replace("lost-workers", "never-run"))
    for name, text in (("lost", LOST), ("killed", KILLED), ("cut", CUT)):
        (faults / f"{name}.yaml").write_text(text)

    done = run_lab(
        "lost-workers", "server-killed", "cut-and-slow",
        "--scenarios", str(tmp_path), "--out", str(tmp_path / "out"), "--seconds", "1",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    for what in MET:
        [line] = [line for line in done.stdout.splitlines() if line.startswith(f"| {what}")]
        assert "| met" in line, line
    for what in TOLD:
        assert f"| {what}" in done.stdout
    assert left_behind() == []
