"""Write down who was seen working for a job, so that its bill can be told later.

A node's entry goes on while the node is seen in the same place at the same price. One that was
silent for longer than SILENCE has ended at its last sighting, and begins a new entry when it is
back; so does a name that another instance took over. An agent that restarts goes on with its entry.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from spotwright.domain.job_run import JobRun
from spotwright.domain.ledger import SILENCE, LedgerEntry, ProgressMark, RentedPool
from spotwright.domain.offer import Pool
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.store_ports import LedgerStore

_LOOK_EVERY = timedelta(seconds=30)
_ROWS_A_ROUND = 2_000  # written in one step, in some tens of milliseconds
_MARK_STEP = 0.005  # of the goal: a job has some 200 marks


def ledger_changes(
    job_id: str,
    agents: Iterable[AgentRecord],
    *,
    known: Mapping[str, LedgerEntry],
    prices: Mapping[Pool, float],
    now: datetime,
) -> list[LedgerEntry]:
    """Return the entries to write, those that went on and those that began.

    Args:
        job_id: whose ledger it is.
        agents: those that work for the job.
        known: the latest entry of each agent.
        prices: of one node, of all pools that the job ever had.
        now: the controller's clock.
    """
    found = (_entry(job_id, agent, prices) for agent in agents if agent.last_seen is not None)
    changes = (_change(known.get(seen.agent_id), seen, now) for seen in found)
    return [entry for entry in changes if entry is not None]


def new_marks(
    written: ProgressMark | None, before: ProgressMark | None, current: ProgressMark
) -> list[ProgressMark]:
    """Return the marks to write: one for each step, and one at the end of a standstill.

    Args:
        written: the latest mark that was written.
        before: what was seen at the look before this one.
        current: what is seen now.
    """
    if written is None:
        return [current]
    if current.fraction - written.fraction < _MARK_STEP:
        return []
    stood_still = before is not None and before.fraction == written.fraction
    return [before, current] if before and stood_still and before != written else [current]


@dataclass(slots=True, kw_only=True)
class _Known:
    """What is remembered of a job between looks."""

    entries: dict[str, LedgerEntry]  # the latest of each agent
    looked: datetime
    written: ProgressMark | None = None
    before: ProgressMark | None = None


class LedgerKeeper:
    """Keeps the ledgers of the jobs that one controller has. One thread uses it."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}
        self._entries: dict[tuple[str, str, datetime], LedgerEntry] = {}  # to be written
        self._marks: list[ProgressMark] = []

    def start_round(self, job_ids: Collection[str]) -> None:
        """Begin another round over these jobs; others are forgotten."""
        self._known = {job_id: k for job_id, k in self._known.items() if job_id in job_ids}

    def look(
        self,
        job: JobRun,
        agents: Sequence[AgentRecord],
        *,
        prices: Mapping[Pool, float],
        now: datetime,
    ) -> None:
        """Note what changed about a job, unless it is too early to look again."""
        known = self._known.get(job.job_id)
        is_early = known is not None and not _is_due(known, agents, now)
        if is_early or len(self._entries) >= _ROWS_A_ROUND:
            return
        if known is None:
            known = self._known[job.job_id] = self._remembered(job.job_id, now)
        known.looked = now
        for entry in ledger_changes(
            job.job_id, agents, known=known.entries, prices=prices, now=now
        ):
            known.entries[entry.agent_id] = entry
            self._entries[entry.job_id, entry.agent_id, entry.start_time] = entry
        self._note_progress(job, known, now)

    def write(self) -> None:
        """Write what was noted, in one step; what cannot be written now is kept for later."""
        if not self._entries and not self._marks:
            return
        self._store.write_ledger(list(self._entries.values()), self._marks)
        self._entries, self._marks = {}, []

    def _remembered(self, job_id: str, now: datetime) -> _Known:
        since = now - 2 * SILENCE  # nothing older can go on
        latest = {e.agent_id: e for e in self._store.ledger(job_id, seen_since=since)}
        marks = self._store.progress_marks(job_id)
        return _Known(entries=latest, looked=now, written=marks[-1] if marks else None)

    def _note_progress(self, job: JobRun, known: _Known, now: datetime) -> None:
        if job.progress_fraction is None:
            return
        current = ProgressMark(job_id=job.job_id, time=now, fraction=job.progress_fraction)
        if marks := new_marks(known.written, known.before, current):
            self._marks += marks
            known.written = current
        known.before = current


def _is_due(known: _Known, agents: Iterable[AgentRecord], now: datetime) -> bool:
    """Tell whether it is time to look again; a node that is new is not kept waiting."""
    return now - known.looked >= _LOOK_EVERY or any(
        agent.last_seen is not None
        and agent.last_seen > known.looked
        and agent.facts.agent_id not in known.entries
        for agent in agents
    )


def _entry(job_id: str, agent: AgentRecord, prices: Mapping[Pool, float]) -> LedgerEntry:
    """Return an entry that holds nothing but the agent's latest sighting."""
    facts = agent.facts
    assert agent.last_seen is not None
    pool = RentedPool(facts.instance_type, facts.zone, facts.market)
    return LedgerEntry(
        job_id=job_id,
        agent_id=facts.agent_id,
        start_time=agent.last_seen,
        end_time=agent.last_seen,
        instance_id=facts.instance_id,
        pool=pool,
        price_usd_per_hour=_price(pool, prices),
    )


def _price(rented: RentedPool, prices: Mapping[Pool, float]) -> float | None:
    found = (usd for pool, usd in prices.items() if str(pool) == str(rented))
    return next(found, None)


def _change(known: LedgerEntry | None, seen: LedgerEntry, now: datetime) -> LedgerEntry | None:
    """Return the entry to write about a node, or None where there is nothing new."""
    if known is None:
        return seen if now - seen.end_time <= SILENCE else None
    if seen.end_time <= known.end_time:
        return None
    if (seen.instance_id, seen.pool) == (known.instance_id, known.pool):
        # A price that is not known now, or was not known yet, is that of the same node.
        seen = replace(seen, price_usd_per_hour=_either(seen, known))
        known = replace(known, price_usd_per_hour=_either(known, seen))
    is_same = _rent(seen) == _rent(known)
    if is_same and seen.end_time - known.end_time <= SILENCE:
        return replace(known, end_time=seen.end_time)
    return seen


def _either(entry: LedgerEntry, other: LedgerEntry) -> float | None:
    own = entry.price_usd_per_hour
    return other.price_usd_per_hour if own is None else own


def _rent(entry: LedgerEntry) -> tuple[str, RentedPool, float | None]:
    """Return what does not change while an entry goes on."""
    return entry.instance_id, entry.pool, entry.price_usd_per_hour
