"""Put telemetry that is old enough into history, and drop what is older still."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from spotwright.usecases.history_ports import Archived
from spotwright.usecases.store_ports import HistorySource, Retention

_DAY_S = 86_400.0
_NOTHING = Archived(until_unix_s=0.0, segment_count=0, row_count=0)
GoOn = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseRules:
    """How long things are kept, and how much is dropped at once."""

    batches_s: float = 1_800.0
    rollups_s: Mapping[int, float] = field(  # by resolution
        default_factory=lambda: {10: 2 * _DAY_S, 60: 90 * _DAY_S}
    )
    requests_s: float = 7 * _DAY_S
    agents_s: float = 90 * _DAY_S  # not connected, and not seen for so long
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
    archive: Callable[[GoOn], Archived] | None = None,  # None: history is off
    go_on: GoOn = lambda: True,
) -> HouseReport:
    """Do one round.

    Args:
        source: what is kept.
        now_unix_s: the time.
        rules: how long it is kept.
        archive: writes the history that is due; batches that it has not reached are not dropped.
        go_on: asked again and again; the round ends when it says no.
    """
    rules = rules or HouseRules()
    archived, problem = None, None
    try:
        archived = None if archive is None else archive(go_on)
    except Exception as error:  # what is not in history stays; everything else is dropped in time
        archived, problem = _NOTHING, error
    retention = _retention(rules, now_unix_s, archived)
    report = _prune(source, retention, rules, go_on)
    if problem is not None:
        raise problem
    return replace(report, archived=archived)


def _prune(
    source: HistorySource, retention: Retention, rules: HouseRules, go_on: GoOn
) -> HouseReport:
    dropped_count, is_done = 0, False
    for _ in range(rules.max_chunks):
        if is_done or not go_on():
            break
        dropped = source.prune(retention, limit=rules.chunk_count)
        dropped_count, is_done = dropped_count + dropped, dropped == 0
    return HouseReport(dropped_count=dropped_count, is_done=is_done, archived=None)


def _retention(rules: HouseRules, now_unix_s: float, archived: Archived | None) -> Retention:
    before = now_unix_s - rules.batches_s
    return Retention(
        batches_unix_s=before if archived is None else min(before, archived.until_unix_s),
        rollups_unix_s={r: now_unix_s - kept_s for r, kept_s in rules.rollups_s.items()},
        requests_unix_s=now_unix_s - rules.requests_s,
        agents_unix_s=now_unix_s - rules.agents_s,
    )
