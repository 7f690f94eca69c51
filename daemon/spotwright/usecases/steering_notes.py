"""What the controller of a steered job remembers, so that the next one goes on with it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from spotwright.domain.offer import Pool
from spotwright.domain.steering import Trigger
from spotwright.domain.steering_question import JobFacts
from spotwright.usecases.steering_json import (
    facts_document,
    facts_of,
    memory_document,
    memory_of,
    text_of,
)
from spotwright.usecases.steering_memory import SteeringMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """How far a plan was carried out."""

    written_plan_id: str = ""  # whose variables are on disk
    started_plan_id: str = ""  # whose apply was begun
    applied_plan_id: str = ""  # whose apply ended well
    failed_plan_id: str = ""  # whose last try failed
    failure_count: int = 0  # of that plan, one after the other
    retry_unix_s: float = 0.0  # not before
    saved_unix_s: float = 0.0  # when training has saved its state: no apply before
    give_back_unix_s: float | None = None  # when all is given back: the budget is spent
    is_given_back: bool = False
    given_up: tuple[str, ...] = ()  # nodes to be ended: others of their pools take their place


class Asked(NamedTuple):
    """That something asks for a decision."""

    look: int  # the latest that saw it, counted from 1
    forced: bool  # it cannot wait until a change pays


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringNotes:
    """All that is remembered."""

    memory: SteeringMemory = field(default_factory=SteeringMemory)
    facts: JobFacts | None = None  # None: nothing was decided yet
    looks: int = 0  # that were made
    since_unix_s: float | None = None  # the times in `memory` are counted from it
    pending: Mapping[Trigger, Asked] = field(default_factory=dict)  # no decision was made yet
    leaving_until: Mapping[str, float] = field(default_factory=dict)  # node, seconds since 1970
    starting_since: Mapping[str, float] = field(default_factory=dict)  # node, likewise
    interval_s: float | None = None  # between checkpoints, as training was told last
    carried: Carried = field(default_factory=Carried)
    prices_usd_per_hour: Mapping[Pool, float] = field(default_factory=dict)  # as seen last
    unpriced: frozenset[Pool] = frozenset()  # pools of its nodes whose price nobody has told
    is_unseen: bool = False  # none of its hosts was ever seen, as the log of the job says

    @property
    def forced(self) -> bool:
        """Whether a decision cannot wait until it pays."""
        return any(asked.forced for asked in self.pending.values())


def notes_text(notes: SteeringNotes) -> str:
    """Return notes as they are kept with a job."""
    return text_of(
        {
            "memory": memory_document(notes.memory),
            "facts": None if notes.facts is None else facts_document(notes.facts),
            "looks": notes.looks,
            "since_unix_s": notes.since_unix_s,
            "pending": dict(notes.pending),
            "leaving_until": dict(notes.leaving_until),
            "starting_since": dict(notes.starting_since),
            "interval_s": notes.interval_s,
            "carried": asdict(notes.carried),
            "prices": {str(pool): usd for pool, usd in notes.prices_usd_per_hour.items()},
            "unpriced": sorted(map(str, notes.unpriced)),
            "is_unseen": notes.is_unseen,
        }
    )


def notes_of(text: str) -> SteeringNotes:
    """Read notes back; of a job without any they are new."""
    if not text:
        return SteeringNotes()
    values = json.loads(text)
    facts = values["facts"]
    return SteeringNotes(
        memory=memory_of(values["memory"]),
        facts=None if facts is None else facts_of(facts),
        looks=values["looks"],
        since_unix_s=values["since_unix_s"],
        pending={Trigger(name): Asked(*asked) for name, asked in values["pending"].items()},
        leaving_until=values["leaving_until"],
        starting_since=values["starting_since"],
        interval_s=values["interval_s"],
        carried=_carried_of(values["carried"]),
        prices_usd_per_hour={Pool.parse(name): usd for name, usd in values["prices"].items()},
        unpriced=frozenset(map(Pool.parse, values["unpriced"])),
        is_unseen=values["is_unseen"],
    )


def _carried_of(document: Mapping[str, Any]) -> Carried:
    return Carried(**{**document, "given_up": tuple(document.get("given_up", ()))})
