"""Who an agent is."""

from dataclasses import dataclass, field

from spotwright_agent.readings import HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What an agent says of itself when it opens a session."""

    agent_id: str
    agent_version: str = ""
    hostname: str = ""
    job_id: str = ""
    host: HostFacts = field(default_factory=HostFacts)
    gpu_names: tuple[str, ...] = ()
