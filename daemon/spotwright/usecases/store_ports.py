"""What the daemon needs of a durable store. Methods may block; any thread may call them.

Each raises StoreUnavailableError when the store cannot be reached or cannot write now (locked, disk
full, server gone); nothing of such a call is kept, or all of it is and the same call again is safe.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import datetime
from typing import NamedTuple, Protocol

from spotwright.domain.access import TokenRecord
from spotwright.domain.job_run import Event, JobRun, JobState, NewEvent, PlanRecord
from spotwright.domain.ledger import LedgerEntry, ProgressMark
from spotwright.domain.telemetry import (
    AgentFacts,
    AgentRecord,
    BatchKey,
    QueuedCommand,
    ReceivedBatch,
    RollupPart,
    StepSums,
    StoredBatch,
)


class PageStart(NamedTuple):
    """Where a page of a list, newest first, goes on."""

    create_time: datetime
    last_id: str


class PlanStore(Protocol):
    """Plans that were made."""

    def add_plan(self, plan: PlanRecord, *, request_id: str = "") -> PlanRecord:
        """Keep a plan; where this request made one before, return that one instead."""

    def plan_of_request(self, request_id: str) -> PlanRecord | None:
        """Return the plan that a request made."""

    def plan(self, plan_id: str) -> PlanRecord:
        """Return a plan, or raise NotFoundError."""

    def plans(
        self, *, job_name: str = "", after: PageStart | None = None, limit: int
    ) -> Sequence[PlanRecord]:
        """Return plans, newest first, ties by plan_id; their documents may be empty."""


class Lease(NamedTuple):
    """Something that is someone's for a while."""

    name: str
    owner: str


class JobStore(Protocol):
    """Jobs and their logs of events."""

    def add_job(self, job: JobRun, events: Sequence[NewEvent], *, request_id: str = "") -> JobRun:
        """Keep a job with its first events; where this request made one before, return that one."""

    def job(self, job_id: str) -> JobRun:
        """Return a job, or raise NotFoundError."""

    def jobs(
        self,
        *,
        states: Collection[JobState] = (),
        after: PageStart | None = None,
        limit: int,
    ) -> Sequence[JobRun]:
        """Return jobs, newest first, ties by job_id; no states: all of them."""

    def change_job(
        self,
        job_id: str,
        change: Callable[[JobRun], tuple[JobRun, Sequence[NewEvent]]],
        *,
        request_id: str = "",
        under: Lease | None = None,
    ) -> JobRun:
        """Replace a job by what `change` makes of it, and log events, in one step.

        Nothing changes where the lease `under` which it is done is not its owner's any more. No
        other change of the job comes in between. A request that was carried out before changes
        nothing. What `change` raises is raised, and nothing is kept.
        """

    def events(self, job_id: str, *, after_sequence: int = 0, limit: int) -> Sequence[Event]:
        """Return a job's events, oldest first."""


class LedgerStore(Protocol):
    """Who was seen working for jobs, and how far these had come."""

    def write_ledger(
        self, entries: Sequence[LedgerEntry], marks: Sequence[ProgressMark] = ()
    ) -> None:
        """Write entries and marks in one step.

        An entry of the same job, agent and start_time is known already: its end_time moves on, and
        never back. A mark of the same job and time is as it was.
        """

    def ledger(self, job_id: str, *, seen_since: datetime | None = None) -> Sequence[LedgerEntry]:
        """Return a job's entries by start_time, ties by agent; those that ended since."""

    def progress_marks(self, job_id: str) -> Sequence[ProgressMark]:
        """Return how far a job had come, oldest first."""


class LeaseStore(Protocol):
    """Who owns what, for a while, by the store's own clock."""

    def acquire_lease(self, name: str, owner: str, *, ttl_s: float) -> bool:
        """Take or renew a lease; False where someone else has it."""

    def acquire_leases(self, names: Collection[str], owner: str, *, ttl_s: float) -> Set[str]:
        """Take or renew leases in one step; return those that are not someone else's."""

    def release_lease(self, name: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is someone else's."""

    def release_leases(self, names: Collection[str], owner: str) -> None:
        """Give leases back in one step; nothing happens to those that are someone else's."""


class SessionStart(NamedTuple):
    """What an agent's session starts from."""

    last_sequence: int  # of its boot; everything up to it is stored


class TelemetryStore(Protocol):
    """Agents, and what they sent."""

    def open_session(self, facts: AgentFacts, *, session_id: str, replica: str) -> SessionStart:
        """Make this the agent's one session, whatever session it had before."""

    def close_session(self, agent_id: str, session_id: str) -> None:
        """Mark the agent as not connected, if this is still its session."""

    def session_ids(self, agent_ids: Collection[str]) -> dict[str, str]:
        """Return the open session of each agent that has one."""

    def commit_batches(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        """Store batches for good, in one step; return those that were not stored before.

        With each new batch its rollups, the agent's latest figures, its steps for a job and, for
        each notice and probe of an agent that works for a known job, an event of that job are
        stored.
        """

    def agents(
        self,
        *,
        job_id: str = "",
        after_id: str = "",
        seen_since: datetime | None = None,
        limit: int,
    ) -> Sequence[AgentRecord]:
        """Return agents by name, those after `after_id`; no job_id: of all jobs and of none.

        With `seen_since` only those that have sent something since.
        """

    def agent(self, agent_id: str) -> AgentRecord:
        """Return an agent, or raise NotFoundError."""

    def batches(
        self, agent_id: str, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        """Return batches that may hold samples of [start, end), in the order they were stored.

        Each comes with its row number; `after` is the row number to go on after.
        """

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        """Return whole intervals that start within [start, end), oldest first."""

    def queue_command(self, command: QueuedCommand) -> None:
        """Keep a command until it is taken; NotFoundError where nobody has that name."""

    def take_commands(self, agent_ids: Collection[str]) -> Sequence[QueuedCommand]:
        """Return the commands that wait for these agents, oldest first, and forget them."""


class StepStore(Protocol):
    """How far agents say that jobs are."""

    def job_steps(self, job_ids: Collection[str]) -> Mapping[str, Sequence[StepSums]]:
        """Return the sums of each agent that made steps for these jobs; each step counts once."""


class TokenStore(Protocol):
    """Tokens of people and machines."""

    def add_token(self, token: TokenRecord) -> None:
        """Keep a token."""

    def token(self, token_id: str) -> TokenRecord | None:
        """Return a token."""

    def tokens(self) -> Sequence[TokenRecord]:
        """Return all tokens, by name and time."""

    def revoke_token(self, token_id: str, *, time: datetime) -> None:
        """End a token; NotFoundError where nobody has that name."""


class Retention(NamedTuple):
    """Before when things are dropped, in seconds since 1970."""

    batches_unix_s: float
    rollups_unix_s: dict[int, float]  # by resolution
    requests_unix_s: float = 0.0
    agents_unix_s: float = 0.0  # those that are not connected, by when they were last seen


class HistorySource(Protocol):
    """Raw batches on their way into history files, and their end."""

    def oldest_batch_unix_ms(self, *, since_unix_ms: int = 0) -> int | None:
        """Return when the oldest batch that is kept was received, of those received since."""

    def received_batches(
        self, *, start_unix_ms: int, end_unix_ms: int, after: int = 0, limit: int
    ) -> Sequence[tuple[int, StoredBatch]]:
        """Return batches received within [start, end), in the order they were stored."""

    def prune(self, retention: Retention, *, limit: int) -> int:
        """Drop at most `limit` rows of each kind that are older; return how many were dropped."""


class Store(
    PlanStore,
    JobStore,
    LedgerStore,
    LeaseStore,
    TelemetryStore,
    StepStore,
    TokenStore,
    HistorySource,
    Protocol,
):
    """All of it: SQLite for one daemon, PostgreSQL for several."""

    def close(self) -> None:
        """Let go of every connection."""
