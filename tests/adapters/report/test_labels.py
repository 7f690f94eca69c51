"""Labels are put where nothing is, for marks anywhere."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.report.labels import Box, Label, Labelling, shortened, text_width_px

FRAME = Box(40.0, 20.0, 330.0, 300.0)
points = st.tuples(st.floats(40, 330), st.floats(20, 300))
names = st.text(min_size=1, max_size=60)


def placed(marks: list[tuple[tuple[float, float], str]]) -> Labelling:
    boxes = [Box(x - 6, y - 6, x + 6, y + 6) for (x, y), _ in marks]
    labelling = Labelling(inside=FRAME, marks=list(boxes), lines=[], font_px=12)
    for anchor, text in marks:
        labelling.place(Label(text=text, anchors=(anchor,)))
    return labelling


@given(marks=st.lists(st.tuples(points, names), max_size=15))
def test_no_label_overlaps_another_or_a_mark_or_leaves_the_frame(
    marks: list[tuple[tuple[float, float], str]],
) -> None:
    found = placed(marks).placed

    for one, other in combinations([label.box for label in found], 2):
        apart_x = one.right <= other.left or other.right <= one.left
        assert apart_x or one.bottom <= other.top or other.bottom <= one.top
    for label in found:
        box = label.box
        assert FRAME.left <= box.left
        assert box.right <= FRAME.right
        assert FRAME.top <= box.top
        assert box.bottom <= FRAME.bottom
        assert text_width_px(label.text, 12) <= box.right - box.left + 1e-6
        for (x, y), _ in marks:
            assert (
                x + 6 <= box.left or box.right <= x - 6 or y + 6 <= box.top or box.bottom <= y - 6
            )


def test_a_mark_alone_has_its_whole_label_beside_it() -> None:
    (label,) = placed([((180.0, 150.0), "on-demand only")]).placed

    assert label.text == "on-demand only"
    assert label.leader is None


@given(text=names, width_px=st.floats(20, 200))
def test_a_shortened_text_fits_and_begins_as_the_whole_does(text: str, width_px: float) -> None:
    short = shortened(text, width_px, 12)

    assert text_width_px(short, 12) <= width_px + 1e-6
    assert short == text or text.startswith(short.removesuffix("…"))
