"""What a plan would change, as `terraform plan -json` tells it while it runs, one event a line.

`terraform show -json` tells more of each change, but it starts the provider once more to read its
schema, which takes longer than everything that Spotwright does itself.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spotwright.domain.errors import TerraformError


class Action(StrEnum):
    """What happens to one resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    FORGET = "forget"  # it stays, and is no longer managed


_ACTIONS = {action.value: action for action in Action} | {"remove": Action.FORGET}
_NOTHING = {"noop", "read", "open", "renew", "close", "move", "import"}
_SLOW = {"apply_progress"}  # what takes seconds says so; the rest would be a line a resource
_MESSAGES_KEPT = 20
_STRAYS_KEPT = 200
_REASONS = {
    "cannot_update": "it cannot be changed in place",
    "replace_triggered_by": "something that it is made of changes",
    "requested": "it was asked for",
    "tainted": "it was not made whole",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """One resource that a plan changes."""

    address: str
    kind: str  # aws_autoscaling_group
    key: str | None  # of for_each, or the number of count
    action: Action
    reason: str = ""  # why it is replaced
    is_leftover: bool = False  # what a replacement could not remove; the one in force stays


class PlanEvents:
    """Takes the lines of one run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Say what takes long, and warnings, as they come."""
        self._say = say
        self._gone: set[str] = set()
        self._changes: list[ResourceChange] = []
        self._errors: list[str] = []
        self._strays: deque[str] = deque(maxlen=_STRAYS_KEPT)
        self._messages: deque[str] = deque(maxlen=_MESSAGES_KEPT)

    @property
    def changes(self) -> tuple[ResourceChange, ...]:
        """What would be done, by address."""
        return tuple(sorted(self._changes, key=lambda change: change.address))

    @property
    def gone(self) -> tuple[str, ...]:
        """What somebody else removed since Terraform last looked, by address."""
        return tuple(sorted(self._gone))

    @property
    def errors(self) -> str:
        """What went wrong, in the words and the form that Terraform has for people."""
        return "\n\n".join(self._errors) or "\n".join(self._strays)

    @property
    def last_words(self) -> str:
        """What was said last: all that there is where a run ends without an error."""
        return "\n".join(self._messages)

    def take(self, line: str) -> None:
        """Take one line; what is no event is a log, or the last word before there can be any."""
        try:
            event = json.loads(line)
            kind = event["type"]
        except (ValueError, KeyError, TypeError):
            self._strays.append(line)
            self._say(line)
            return
        self._messages.append(str(event.get("@message", "")))
        if kind == "planned_change":
            self._take_change(event["change"])
        elif kind == "diagnostic":
            self._take_diagnostic(event["diagnostic"])
        elif kind == "resource_drift":
            self._take_drift(event["change"])
        elif kind in _SLOW:
            self._say(event["@message"])

    def _take_drift(self, change: Mapping[str, Any]) -> None:
        """Keep what is gone; of the rest, most is what AWS itself fills in after an apply."""
        if change["action"] == "delete":
            self._gone.add(change["resource"]["addr"])

    def _take_change(self, change: Mapping[str, Any]) -> None:
        told = change["action"]
        if told in _NOTHING:
            return
        if told not in _ACTIONS:
            where = change["resource"]["addr"]
            raise TerraformError(
                f"Terraform would {told!r} {where}, and this Spotwright does not know what that "
                "is; upgrade it, or use `terraform` itself"
            )
        resource = change["resource"]
        key = resource["resource_key"]
        # Terraform says why the configuration has something no more, and of leftovers nothing.
        is_leftover = told == "delete" and "reason" not in change
        # It gives a trigger as the reason also of what is made anew because it is gone.
        why = change.get("reason", "") if told == Action.REPLACE else ""
        self._changes.append(
            ResourceChange(
                address=resource["addr"],
                kind=resource["resource_type"],
                key=None if key is None else str(key),
                action=_ACTIONS[told],
                reason=_REASONS.get(why, ""),
                is_leftover=is_leftover,
            )
        )

    def _take_diagnostic(self, diagnostic: Mapping[str, Any]) -> None:
        is_error = diagnostic["severity"] == "error"
        parts = [f"{'Error' if is_error else 'Warning'}: {diagnostic['summary']}"]
        if "address" in diagnostic:
            parts.append(f"  with {diagnostic['address']},")
        if "range" in diagnostic:
            where = diagnostic["range"]
            parts.append(f"  on {where['filename']} line {where['start']['line']}")
        if diagnostic.get("detail"):
            parts.append(diagnostic["detail"])
        text = "\n\n".join(parts)
        if is_error:
            self._errors.append(text)
        else:
            self._say(text)
