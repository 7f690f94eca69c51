"""An agent whose daemon is restarted, killed and away for long."""

import random
import time
from dataclasses import dataclass
from pathlib import Path

from spotwright.v1 import telemetry_pb2 as v1
from tests.agent.agent_process import running_agent
from tests.agent.nvml_stub import StubGpus
from tests.daemon_process import running_daemon
from tests.e2e.stored_samples import gaps, sampled_after, stored_samples, telemetry, until_agent

GPU_COUNT = 2
SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Endured:
    """What is stored afterwards."""

    samples: list[v1.HostSample]
    dropped_count: int  # as the agent told
    started_unix_s: float
    ended_unix_s: float
    agent_log: list[str]

    @property
    def gaps(self) -> list[str]:
        """Where samples are missing or doubled."""
        return gaps(self.samples)


def endure(folder: Path, *, restart_count: int, outage_s: float) -> Endured:
    """Restart the daemon, every other time with -9, then leave it away for long."""
    gpus = StubGpus(folder, count=GPU_COUNT)
    (folder / "daemon").mkdir()
    with (
        running_daemon(folder / "daemon", "--raw-window", "4h") as daemon,
        running_agent(
            folder / "agent", "--agent-id", "gpu-1", "--daemon", daemon.address,
            environment=gpus.environment,
        ) as agent,
    ):  # fmt: skip
        started_unix_s = time.time()
        with telemetry(daemon.address) as stub:
            until_agent(stub, "gpu-1", lambda agent: agent.last_sequence)
        pick = random.Random(SEED)
        for restart in range(restart_count):
            daemon.kill() if restart % 2 else daemon.stop()
            time.sleep(pick.uniform(0.0, 1.0))
            daemon.start()
            time.sleep(pick.uniform(0.5, 2.0))
        daemon.stop()
        time.sleep(outage_s)
        daemon.start()
        ended_unix_s = time.time()
        with telemetry(daemon.address) as stub:
            found = until_agent(stub, "gpu-1", sampled_after(ended_unix_s))
            samples = stored_samples(stub, "gpu-1")
    return Endured(
        samples=samples,
        dropped_count=found.dropped_sample_count,
        started_unix_s=started_unix_s,
        ended_unix_s=ended_unix_s,
        agent_log=agent.log,
    )
