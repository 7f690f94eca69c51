"""Fleets as people write them.

    fleet  = term { "+" term }
    term   = [ "ps=" ] TYPE [ ":" GPUS ] [ "*" COUNT ] [ "@" ZONE ] [ "/" MARKET ]
           | "lambda:" MB [ "*" COUNT ]

TYPE is an instance type or a GPU name. `parse` and `format_terms` are inverse to each other; which
offer a term stands for is decided later, by the job's limits and the catalog.
"""

import re
from dataclasses import dataclass

from spotwright.domain.errors import FleetExpressionError, nearest_name
from spotwright.domain.fleet import Role
from spotwright.domain.offer import Market

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*(?: +[A-Za-z0-9._-]+)*")
_INTEGER = re.compile(r"[0-9]+")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_MARKET = re.compile(r"[A-Za-z-]+")
_SPACE = re.compile(r"\s*")
_MOST = 1_000_000  # of anything: more is a slip of the finger


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """One term of a fleet expression; None = left out."""

    type_name: str
    role: Role = Role.WORKER
    gpu_count: int | None = None
    node_count: int = 1
    zone: str | None = None
    market: Market | None = None
    column: int = 1  # where it stands, so that later errors can point at it


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTerm:
    """Serverless functions: `lambda:2560*8` is eight functions of 2,560 MB."""

    memory_mb: int
    function_count: int = 1
    column: int = 1


Term = NodeTerm | FunctionTerm


def parse(text: str) -> tuple[Term, ...]:
    """Read a fleet expression, or raise FleetExpressionError at the column that is wrong."""
    scanner = _Scanner(text)
    terms = [_term(scanner)]
    while not scanner.at_end():
        scanner.expect("+", "expected '+' and another group")
        terms.append(_term(scanner))
    return tuple(terms)


def format_terms(terms: tuple[Term, ...]) -> str:
    """Print terms so that `parse` reads the same again."""
    return " + ".join(_format_term(term) for term in terms)


class _Scanner:
    """The rest of the text, and where it starts."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self._skip_space()

    @property
    def column(self) -> int:
        return self.position + 1

    def at_end(self) -> bool:
        return self.position == len(self.text)

    def accept(self, literal: str) -> bool:
        if not self.text.startswith(literal, self.position):
            return False
        self.position += len(literal)
        self._skip_space()
        return True

    def expect(self, literal: str, problem: str) -> None:
        if not self.accept(literal):
            raise self.error(f"{problem}, found {self._found()}")

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected {what}, found {self._found()}")
        self.position = match.end()
        self._skip_space()
        return match[0]

    def positive_integer(self, what: str) -> int:
        column = self.column
        digits = self.take(_INTEGER, f"{what} (a whole number)").lstrip("0") or "0"
        if len(digits) > len(str(_MOST)) or not 1 <= int(digits) <= _MOST:
            problem = f"{what} must be from 1 to {_MOST:,}, got {digits[:12]}"
            raise self.error(problem, column=column)
        return int(digits)

    def error(self, problem: str, *, column: int | None = None) -> FleetExpressionError:
        return FleetExpressionError(problem, text=self.text, column=column or self.column)

    def _found(self) -> str:
        return repr(self.text[self.position]) if not self.at_end() else "the end"

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position


def _term(scanner: _Scanner) -> Term:
    column = scanner.column
    role = Role.PS if scanner.accept("ps=") else Role.WORKER
    name = scanner.take(_NAME, "an instance type or GPU name")
    if name == "lambda":
        return _function_term(scanner, role, column)
    return NodeTerm(
        role=role,
        type_name=name,
        gpu_count=scanner.positive_integer("the number of GPUs") if scanner.accept(":") else None,
        node_count=scanner.positive_integer("the number of nodes") if scanner.accept("*") else 1,
        zone=scanner.take(_ZONE, "a zone id") if scanner.accept("@") else None,
        market=_market(scanner) if scanner.accept("/") else None,
        column=column,
    )


def _function_term(scanner: _Scanner, role: Role, column: int) -> FunctionTerm:
    if role is Role.PS:
        raise scanner.error("functions cannot be parameter servers", column=column)
    scanner.expect(":", "lambda needs its memory, as in lambda:2560*8")
    memory_mb = scanner.positive_integer("the memory in MB")
    count = scanner.positive_integer("the number of functions") if scanner.accept("*") else 1
    return FunctionTerm(memory_mb=memory_mb, function_count=count, column=column)


def _market(scanner: _Scanner) -> Market:
    column = scanner.column
    word = scanner.take(_MARKET, "spot or on-demand")
    try:
        return Market(word)
    except ValueError:
        hint = nearest_name(word, list(Market))
        meant = f", did you mean {hint!r}?" if hint else ""
        problem = f"unknown market {word!r}{meant}; a market is spot or on-demand"
        raise scanner.error(problem, column=column) from None


def _format_term(term: Term) -> str:
    if isinstance(term, FunctionTerm):
        return f"lambda:{term.memory_mb}*{term.function_count}"
    return "".join(
        [
            "ps=" if term.role is Role.PS else "",
            term.type_name,
            f":{term.gpu_count}" if term.gpu_count is not None else "",
            f"*{term.node_count}" if term.node_count != 1 else "",
            f"@{term.zone}" if term.zone is not None else "",
            f"/{term.market}" if term.market is not None else "",
        ]
    )
