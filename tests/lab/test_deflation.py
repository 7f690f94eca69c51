"""A CPU quota that is cut in mid-run, as people call it: what the agent of that host tells."""

from pathlib import Path

import pytest

from tests.lab.laboratory_command import require_rights, run_lab

SCENARIO = """\
deflation-short:
  strategy: asp-ps
  model: {size: 1 MB}
  batch: 16
  workers: [{count: 1, device: cpu, link: 200 Mbit/s}, {count: 1, device: fast, link: 200 Mbit/s}]
  servers: {count: 1, link: 400 Mbit/s}
  faults: [{at: 12s, cpus: [w1], to: 0.25}]
"""


@pytest.mark.timeout(400)
def test_the_agent_of_a_host_tells_that_its_cpu_quota_was_cut(tmp_path: Path) -> None:
    require_rights()
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "deflation.yaml").write_text(SCENARIO)
    (tmp_path / "one.yaml").write_text(SCENARIO.replace("deflation-short", "never-run"))

    done = run_lab(
        "deflation", "--scenarios", str(tmp_path), "--out", str(tmp_path / "out"), "--seconds", "1"
    )

    assert done.returncode == 0, done.stderr
    [told] = [line for line in done.stdout.splitlines() if "cpu_limit_count" in line]
    before, after = told.split("|")[2].split(", then ")
    assert float(before) >= 1.0
    assert float(after) == 0.25
    for what in ("workers of the plan", "w1, 0.25 CPUs left: the same from what was done to it"):
        assert f"| {what}" in done.stdout
