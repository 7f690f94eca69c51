"""Labels beside marks that neither overlap nor leave the picture."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

LINE_HEIGHT = 1.35  # of the font size
_NARROW, _WIDE = set(" .,:;'|!()[]/-ijltfrI"), set("mwMW@%&")
_DISTANCES_PX = (11.0, 15.0, 24.0, 36.0, 50.0, 68.0, 90.0, 116.0)
_BESIDE_PX = 15.0  # a label farther away than this gets a line to its mark
_DIRECTIONS = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))
_LEADER_STEP_PX = 4.0
_MOST_ROOM = 0.45  # of the picture's width, for one label
_SHORTER = (1.0, 0.6)
_FEWEST_LETTERS = 5  # a shorter rest tells nothing

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share an area."""
        apart_x = self.right <= other.left or other.right <= self.left
        return not (apart_x or self.bottom <= other.top or other.bottom <= self.top)

    def holds(self, other: "Box") -> bool:
        """Whether the other lies inside."""
        within_x = self.left <= other.left and other.right <= self.right
        return within_x and self.top <= other.top and other.bottom <= self.bottom

    def nearest(self, point: Point) -> Point:
        """The point of this box that lies nearest to another."""
        x, y = point
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Text that wants a place beside one of its anchors, the first that has room."""

    text: str
    anchors: tuple[Point, ...]
    class_: str = ""
    with_leader: bool = True  # False: it stands beside its mark or nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLabel:
    """A label that found its place."""

    label: Label
    text: str  # shortened where the whole had no room
    box: Box
    align: str  # SVG's text-anchor
    leader: tuple[Point, Point] | None


@dataclass(slots=True, kw_only=True)
class Labelling:
    """Places labels one after another, so the most important comes first."""

    inside: Box
    marks: list[Box]  # never covered
    lines: list[Box]  # covered rather than a label is cut
    font_px: float
    placed: list[PlacedLabel] = field(default_factory=list)

    def place(self, label: Label) -> None:
        """Put a label down where it is free, shortened if need be; without room it is left out."""
        room = _MOST_ROOM * (self.inside.right - self.inside.left)
        width = min(text_width_px(label.text, self.font_px), room)
        for part, avoided in product(_SHORTER, ([*self.marks, *self.lines], self.marks)):
            text = shortened(label.text, part * width, self.font_px)
            if text != label.text and len(text) <= _FEWEST_LETTERS:
                return
            places = self._candidates(label, text)
            found = next((place for place in places if self._is_free(place, avoided)), None)
            if found is not None:
                self.placed.append(found)
                self.marks += [found.box, *_along(found.leader)]
                return

    def _candidates(self, label: Label, text: str) -> Iterator[PlacedLabel]:
        size = text_width_px(text, self.font_px), LINE_HEIGHT * self.font_px
        for distance in _DISTANCES_PX:
            beside = distance <= _BESIDE_PX
            if not beside and not label.with_leader:
                return
            for anchor in label.anchors:
                for way in _DIRECTIONS:
                    box = _box_towards(anchor, way, distance, size)
                    leader = None if beside else (anchor, box.nearest(anchor))
                    align = {1: "start", 0: "middle", -1: "end"}[way[0]]
                    yield PlacedLabel(label=label, text=text, box=box, align=align, leader=leader)

    def _is_free(self, candidate: PlacedLabel, avoided: Sequence[Box]) -> bool:
        box = candidate.box
        if not self.inside.holds(box) or any(box.overlaps(other) for other in avoided):
            return False
        crossed = [other.box for other in self.placed]
        return not any(o.overlaps(b) for o in _along(candidate.leader) for b in crossed)


def text_width_px(text: str, font_px: float) -> float:
    """Return how wide a text is at most: as in DejaVu Sans, the widest of the usual fonts."""
    return font_px * sum(_em(character) for character in text)


def shortened(text: str, width_px: float, font_px: float) -> str:
    """Return the text, cut with an ellipsis where it is wider than the room."""
    if text_width_px(text, font_px) <= width_px + 1e-6:
        return text
    kept = text
    while kept and text_width_px(kept + "…", font_px) > width_px:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.42
    if character in _WIDE or not character.isascii():
        return 1.0
    return 0.78 if character.isupper() else 0.66


def _box_towards(
    anchor: Point, way: tuple[int, int], distance: float, size: tuple[float, float]
) -> Box:
    """Return a box that begins that far from its anchor, in one of eight directions."""
    reach = distance / math.hypot(*way)
    left, top = (
        place + step * reach + (step - 1) / 2 * extent
        for place, step, extent in zip(anchor, way, size, strict=True)
    )
    return Box(left, top, left + size[0], top + size[1])


def _along(leader: tuple[Point, Point] | None) -> Sequence[Box]:
    """Return small boxes that cover a line."""
    if leader is None:
        return ()
    (x0, y0), (x1, y1) = leader
    count = max(2, math.ceil(math.hypot(x1 - x0, y1 - y0) / _LEADER_STEP_PX))
    middles = [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(count)]
    half = _LEADER_STEP_PX / 2
    return [Box(x - half, y - half, x + half, y + half) for x, y in middles]
