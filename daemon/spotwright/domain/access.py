"""Who may do what."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AccessRole(StrEnum):
    """What a caller may do; each from viewer on may also do what stands before it."""

    AGENT = "agent"  # sends telemetry of its own host and progress of its job, nothing else
    VIEWER = "viewer"  # reads and predicts
    PLANNER = "planner"  # makes plans, starts and stops jobs, commands agents
    ADMIN = "admin"  # also sees the shape of the interface itself (reflection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Someone who calls."""

    name: str  # agent id, name of a token, or `loopback`
    role: AccessRole


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as it is kept: its hash, never itself."""

    token_id: str
    name: str  # of the person or machine that has it
    role: AccessRole
    secret_hash: str
    create_time: datetime
    expire_time: datetime | None
    revoke_time: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether it still opens anything."""
        return self.revoke_time is None and (self.expire_time is None or now < self.expire_time)
