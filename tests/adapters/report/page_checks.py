"""What must hold for every page, whatever it shows."""

import re
from itertools import combinations, pairwise

from tests.adapters.report.page_tree import Node

EMS_PER_LETTER = 0.58  # on average, in the usual sans-serif fonts


def drawn_texts(svg: Node) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Return each text of a picture with the box it takes up, roughly."""
    size = svg.number("font-size")
    found = []
    for node in svg.all("text"):
        shown = "".join(child for child in node.children if isinstance(child, str))
        width, x, y = len(shown) * EMS_PER_LETTER * size, node.number("x"), node.number("y")
        anchor = node.attributes.get("text-anchor", "start")
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        found.append((shown, (left, y - 0.75 * size, left + width, y + 0.2 * size)))
    return found


def check_nothing_is_from_outside(page: Node) -> None:
    for node in page.all():
        assert node.name not in {"script", "link", "img", "iframe", "object", "embed", "base"}
        for name in node.attributes:
            assert name not in {"src", "href", "xlink:href", "srcset", "style"}
            assert not name.startswith("on")
    style = page.one("style").text
    assert "url(" not in style
    assert "@import" not in style


def check_headings_step_down(page: Node) -> None:
    levels = [int(node.name[1]) for node in page.all() if re.fullmatch("h[1-6]", node.name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def check_pictures_say_what_they_show(page: Node) -> None:
    for svg in page.all("svg"):
        if svg.attributes.get("aria-hidden") != "true":
            first = svg.children[0]
            assert svg.attributes["role"] == "img"
            assert svg.attributes["aria-label"]
            assert isinstance(first, Node)
            assert first.name == "title"


def check_texts_stay_inside_and_apart(svg: Node) -> None:
    _, _, width, height = map(float, svg.attributes["viewbox"].split())
    texts = drawn_texts(svg)
    for text, (left, top, right, bottom) in texts:
        assert left >= 0, text
        assert right <= width, text
        assert top >= 0, text
        assert bottom <= height, text
    for (one, a), (other, b) in combinations(texts, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (one, other)


def check_coordinates_are_inside(svg: Node) -> None:
    _, _, width, height = map(float, svg.attributes["viewbox"].split())
    for node in svg.all():
        for names, most in ((("x", "x1", "x2", "cx"), width), (("y", "y1", "y2", "cy"), height)):
            for name in names:
                assert 0 <= float(node.attributes.get(name, 0)) <= most
        for pair in node.attributes.get("points", "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
