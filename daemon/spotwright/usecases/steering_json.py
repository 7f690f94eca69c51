"""What steering is about as JSON: for the next controller, and for the process that decides."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from spotwright.domain.offer import Pool
from spotwright.domain.shrunk import Shrinkage, ShrunkNode
from spotwright.domain.steering import JobNow, Move, NodeState, Steering, Trigger, Weather
from spotwright.domain.steering_question import JobFacts
from spotwright.usecases.steering_memory import SteeringMemory

T = TypeVar("T")


def memory_document(memory: SteeringMemory) -> dict[str, Any]:
    """Return what is remembered of a job as JSON values."""
    return {
        "time_s": memory.time_s,
        "nodes": {name: [str(pool), state] for name, (pool, state) in memory.nodes.items()},
        "down": sorted(map(str, memory.down)),
        "cooling": _by_name(memory.cooling),
        "failures": _by_name({pool: list(seen) for pool, seen in memory.failures.items()}),
        "short_since": _by_name(memory.short_since),
        "weather": _by_name({pool: asdict(seen) for pool, seen in memory.weather.items()}),
        "capacity": asdict(memory.capacity),
        "drift_since_s": memory.drift_since_s,
        "standing": sorted(memory.standing),
        "move": memory.move,
        "change_s": _finite(memory.change_s),
        "check_s": _finite(memory.check_s),
        "goal_per_hour": memory.goal_per_hour,
        "usd_per_hour": memory.usd_per_hour,
        "prices": _by_name(memory.prices),
        "pace_factor": memory.pace_factor,
        "stands_in": memory.stands_in,
        "shrunk": sorted(map(list, memory.shrunk)),
        "shrunk_share": memory.shrunk_share,
        "left": sorted(memory.left),
    }


def memory_of(values: Mapping[str, Any]) -> SteeringMemory:
    """Read back what is remembered."""
    move, change_s, check_s = values["move"], values["change_s"], values["check_s"]
    return SteeringMemory(
        time_s=values["time_s"],
        nodes={
            name: (Pool.parse(pool), NodeState(state))
            for name, (pool, state) in values["nodes"].items()
        },
        down=frozenset(map(Pool.parse, values["down"])),
        cooling=_by_pool(values["cooling"], float),
        failures=_by_pool(values["failures"], lambda seen: (int(seen[0]), float(seen[1]))),
        short_since=_by_pool(values["short_since"], float),
        weather=_by_pool(values["weather"], lambda seen: Weather(**seen)),
        capacity=Weather(**values["capacity"]),
        drift_since_s=values["drift_since_s"],
        standing=frozenset(map(Trigger, values["standing"])),
        move=None if move is None else Move(move),
        change_s=-math.inf if change_s is None else change_s,
        check_s=math.inf if check_s is None else check_s,
        goal_per_hour=values["goal_per_hour"],
        usd_per_hour=values["usd_per_hour"],
        prices=_by_pool(values["prices"], float),
        pace_factor=values["pace_factor"],
        stands_in=values["stands_in"],
        shrunk=frozenset((node_id, text) for node_id, text in values["shrunk"]),
        shrunk_share=values["shrunk_share"],
        left=frozenset(values["left"]),
    )


def now_document(now: JobNow) -> dict[str, Any]:
    """Return what a decision is made from as JSON values."""
    return {
        "time_s": now.time_s,
        "done_fraction": now.done_fraction,
        "spent_usd": now.spent_usd,
        "staying": _by_name(now.staying),
        "asked": _by_name(now.asked),
        "ready_in_s": now.ready_in_s,
        "servers": _by_name(now.servers),
        "down": sorted(map(str, now.down)),
        "weather": _by_name({pool: asdict(seen) for pool, seen in now.weather.items()}),
        "capacity": asdict(now.capacity),
        "prices_usd_per_hour": _by_name(now.prices_usd_per_hour),
        "pace_factor": now.pace_factor,
        "is_spent": now.is_spent,
        "shrunk": [{**asdict(node), "pool": str(node.pool)} for node in now.shrunk],
        "shrunk_share": now.shrunk_share,
    }


def now_of(values: Mapping[str, Any]) -> JobNow:
    """Read back what a decision is made from."""
    known = {
        "staying": _by_pool(values["staying"], int),
        "asked": _by_pool(values["asked"], int),
        "servers": _by_pool(values["servers"], int),
        "down": frozenset(map(Pool.parse, values["down"])),
        "weather": _by_pool(values["weather"], lambda seen: Weather(**seen)),
        "capacity": Weather(**values["capacity"]),
        "prices_usd_per_hour": _by_pool(values["prices_usd_per_hour"], float),
        "shrunk": tuple(map(_shrunk_node, values["shrunk"])),
    }
    return JobNow(**{**values, **known})


def _shrunk_node(values: Mapping[str, Any]) -> ShrunkNode:
    known = {
        "pool": Pool.parse(values["pool"]),
        "shrinkage": Shrinkage(**values["shrinkage"]),
    }
    return ShrunkNode(**{**values, **known})


def steering_document(steering: Steering) -> dict[str, Any]:
    """Return a decision as JSON values."""
    values = {name: getattr(steering, name) for name in _STEERING_FIGURES}
    return values | {
        "move": steering.move,
        "workers": _by_name(steering.workers),
        "servers": _by_name(steering.servers),
        "holds_s": _finite(steering.holds_s),
        "leaves": list(steering.leaves),
    }


def steering_of(values: Mapping[str, Any]) -> Steering:
    """Read back a decision."""
    holds_s = values["holds_s"]
    known = {
        "move": Move(values["move"]),
        "workers": _by_pool(values["workers"], int),
        "servers": _by_pool(values["servers"], int),
        "holds_s": math.inf if holds_s is None else holds_s,
        "leaves": tuple(values["leaves"]),
    }
    return Steering(**{**values, **known})


_STEERING_FIGURES = (
    *("reason", "goal_per_hour", "usd_per_hour", "finish_s", "cost_usd"),
    "gives_back",
    *("stands_in", "pace_factor", "shrunk_share", "share_with_all"),
)


def facts_document(facts: JobFacts) -> dict[str, Any]:
    """Return what a controller must know of a job file as JSON values."""
    return {
        "spot_pools": sorted(map(str, facts.spot_pools)),
        "budget_usd": facts.budget_usd,
        "checkpoint_s": facts.checkpoint_s,
        "stops_as_one": facts.stops_as_one,
    }


def facts_of(values: Mapping[str, Any]) -> JobFacts:
    """Read back what a controller must know of a job file."""
    pools = frozenset(map(Pool.parse, values["spot_pools"]))
    return JobFacts(**{**values, "spot_pools": pools})


def text_of(document: Mapping[str, Any]) -> str:
    """Return JSON values as text; every figure in it is finite."""
    return json.dumps(document, allow_nan=False)


def _by_name(values: Mapping[Pool, Any]) -> dict[str, Any]:
    return {str(pool): value for pool, value in values.items()}


def _by_pool(values: Mapping[str, Any], read: Callable[[Any], T]) -> dict[Pool, T]:
    return {Pool.parse(name): read(value) for name, value in values.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
