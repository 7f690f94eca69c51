"""Put telemetry that is old enough into history, and drop what is older still."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spotwright.usecases.history_ports import Archived
from spotwright.usecases.store_ports import HistorySource, Retention

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseRules:
    """How long things are kept, and how much is dropped at once."""

    batches_s: float = 1_800.0
    rollups_s: Mapping[int, float] = field(  # by resolution
        default_factory=lambda: {10: 2 * _DAY_S, 60: 90 * _DAY_S}
    )
    chunk_count: int = 2_000  # rows of a kind in one transaction: ingest waits no longer
    max_chunks: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseReport:
    """What one round did."""

    dropped_count: int
    is_done: bool  # nothing that is too old is left
    archived: Archived | None  # None: history is off


def keep_house(
    source: HistorySource,
    *,
    now_unix_s: float,
    rules: HouseRules | None = None,
    archive: Callable[[], Archived] | None = None,  # None: history is off
) -> HouseReport:
    """Do one round.

    `archive` writes the history that is due; batches that it has not reached are not dropped.
    """
    rules = rules or HouseRules()
    archived = None if archive is None else archive()
    retention = _retention(rules, now_unix_s, archived)
    dropped_count = 0
    for _ in range(rules.max_chunks):
        dropped = source.prune(retention, limit=rules.chunk_count)
        dropped_count += dropped
        if dropped == 0:
            return HouseReport(dropped_count=dropped_count, is_done=True, archived=archived)
    return HouseReport(dropped_count=dropped_count, is_done=False, archived=archived)


def _retention(rules: HouseRules, now_unix_s: float, archived: Archived | None) -> Retention:
    before = now_unix_s - rules.batches_s
    return Retention(
        batches_unix_s=before if archived is None else min(before, archived.until_unix_s),
        rollups_unix_s={r: now_unix_s - kept_s for r, kept_s in rules.rollups_s.items()},
    )
