"""Enumerations of the domain and their numbers on the wire."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from spotwright.domain.errors import BadInputError

E = TypeVar("E", bound=StrEnum)
N = TypeVar("N", bound=int)  # the generated enumeration


class EnumPairs(Generic[E, N]):
    """The members of an enumeration with their numbers."""

    def __init__(self, what: str, numbers: Mapping[E, N]) -> None:
        """Name the kind as complaints call it."""
        self._what, self._numbers = what, dict(numbers)
        self._members: dict[int, E] = {number: member for member, number in numbers.items()}

    def to_proto(self, member: E) -> N:
        """Return the number of a member."""
        return self._numbers[member]

    def from_proto(self, number: int) -> E:
        """Return the member with a number, or raise BadInputError."""
        try:
            return self._members[number]
        except KeyError:
            known = ", ".join(f"{n} ({member})" for n, member in sorted(self._members.items()))
            raise BadInputError(
                f"{number} is no {self._what}; known: {known}. A newer program may know more"
            ) from None
