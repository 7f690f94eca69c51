"""YAML read as text, with the line of everything in it.

Scalars stay the text that was written: the schema decides what they mean. So `no` stays a word,
`1:30` is not ninety and a duplicate key is an error, none of which YAML 1.1 grants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import yaml

from spotwright.domain.errors import JobFileError

_NULLS = {"", "~", "null", "Null", "NULL"}
_MAX_NODES = 20_000  # a job file has tens; more is an alias bomb
_MAX_DEPTH = 50  # a job file has five; more is an alias inside itself

Tree = dict[str, "Tree"] | list["Tree"] | str | None


@dataclass(frozen=True, slots=True)
class YamlTree:
    """The plain content of a YAML document and where each part stands."""

    path: str
    content: Tree
    root: yaml.Node

    def line_of(self, location: Sequence[str | int]) -> int:
        """Return the line of the deepest part of `location` that exists."""
        node, line = self.root, self.root.start_mark.line
        for step in location:
            found = _child(node, step)
            if found is not None:
                node, line = found
        return line + 1

    def line_of_text(self, text: str) -> int | None:
        """Return the first line where `text` stands as a key or a value."""
        return self.line_where(lambda found: found == text)

    def line_where(self, holds: Callable[[str], bool]) -> int | None:
        """Return the line of the first key or value of which something holds."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, yaml.ScalarNode):
                if holds(node.value):
                    return int(node.start_mark.line) + 1
            elif isinstance(node, yaml.MappingNode):
                stack.extend(part for pair in reversed(node.value) for part in reversed(pair))
            else:
                stack.extend(reversed(node.value))
        return None


def parse_yaml(text: str, *, path: str) -> YamlTree:
    """Read one YAML document whose top is a mapping."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = f"not valid YAML: {error.problem}"
        raise JobFileError(problem, path=path, line=mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        problem = f"not valid YAML: the character #x{error.character:04x} is not allowed"
        line = text.count("\n", 0, error.position) + 1
        raise JobFileError(problem, path=path, line=line) from None
    except RecursionError:
        raise JobFileError("nested too deeply", path=path) from None
    except (ValueError, OverflowError) as error:  # PyYAML on absurd numbers in escapes, versions
        raise JobFileError(f"not valid YAML: {error}", path=path) from None
    if root is None:
        raise JobFileError("the file is empty; `spotwright schema job` shows its shape", path=path)
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise JobFileError("expected `key: value` lines at the top", path=path, line=line)
    return YamlTree(path=path, content=_Plain(path).convert(root), root=root)


class _Plain:
    """Turns nodes into plain values, refusing duplicate keys and runaway aliases."""

    def __init__(self, path: str) -> None:
        self._path, self._seen = path, 0

    def convert(self, node: yaml.Node, *, depth: int = 0) -> Tree:
        self._seen += 1
        if self._seen > _MAX_NODES or depth > _MAX_DEPTH:
            line = node.start_mark.line + 1
            raise JobFileError("too large or self-referring", path=self._path, line=line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item, depth=depth + 1) for item in node.value]
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return None if plain and node.value in _NULLS else str(node.value)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise JobFileError("a key must be plain text", path=self._path, line=line)
            if key.value in result:
                problem = f"the key {key.value!r} is given twice"
                raise JobFileError(problem, path=self._path, line=line)
            result[key.value] = self.convert(value, depth=depth + 1)
        return result


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark.line
    return None
