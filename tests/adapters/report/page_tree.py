"""A page as a tree, read strictly: every tag that opens is closed, in order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta"}


@dataclass(slots=True)
class Node:
    name: str
    attributes: dict[str, str]
    children: list["Node | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def all(self, name: str | None = None, class_: str | None = None) -> Iterator["Node"]:
        """Yield the elements inside that have the name and the class, in the page's order."""
        for child in self.children:
            if isinstance(child, Node):
                named = name is None or child.name == name
                if named and (class_ is None or class_ in child.classes):
                    yield child
                yield from child.all(name, class_)

    def one(self, name: str | None = None, class_: str | None = None) -> "Node":
        found = list(self.all(name, class_))
        assert len(found) == 1, (name, class_, len(found))
        return found[0]

    def number(self, attribute: str) -> float:
        return float(self.attributes[attribute])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/> is not closed in HTML")

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(page: str) -> Node:
    """Return the tree of a page whose every tag is closed."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert [node.name for node in reader.open] == ["document"]
    return reader.open[0]
