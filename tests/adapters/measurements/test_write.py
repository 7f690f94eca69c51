"""A predicted table is the given one with four columns more."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.measurements.read import parse_table
from spotwright.adapters.measurements.write import with_predictions

NEW = ["predicted_step_s", "low_step_s", "high_step_s", "predicted_cluster_steps_per_s"]


def _figures(*values: float) -> dict[str, float]:
    return dict(zip(NEW, values, strict=True))


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_rows_keep_their_order_and_cells_and_get_exactly_four_columns_more() -> None:
    given_text = (
        "note,strategy,fleet,batch_per_gpu,step_s\n"
        'b,allreduce,"T4 + T4",32,\n'
        'a,asp-ps,K80,64,"0.5"\n'
    )
    figures = [_figures(0.25, 0.2, 0.31, 8), _figures(1 / 3, 0.1, 1e-7, 123456789)]

    written = with_predictions(parse_table(given_text, path="m.csv"), figures)

    assert _cells(written) == [
        ["note", "strategy", "fleet", "batch_per_gpu", "step_s", *NEW],
        ["b", "allreduce", "T4 + T4", "32", "", "0.25", "0.2", "0.31", "8"],
        ["a", "asp-ps", "K80", "64", "0.5", "0.333333", "0.1", "1e-07", "1.23457e+08"],
    ]


def test_a_predicted_table_predicted_again_has_its_figures_replaced() -> None:
    plain = parse_table("strategy,fleet,batch_per_gpu\nasp-ps,T4,1\n", path="m.csv")
    once = with_predictions(plain, [_figures(1, 2, 3, 4)])

    again = with_predictions(parse_table(once, path="m.csv"), [_figures(5, 6, 7, 8)])

    assert again == with_predictions(plain, [_figures(5, 6, 7, 8)])
    assert again != once


def test_a_prediction_too_few_is_an_error_and_not_a_shorter_file() -> None:
    table = parse_table("strategy,fleet,batch_per_gpu\nasp-ps,T4,1\nasp-ps,T4,2\n", path="m.csv")

    with pytest.raises(ValueError, match="shorter"):
        with_predictions(table, [_figures(1, 2, 3, 4)])


CELL = st.text(alphabet='ab ",\n;=é', max_size=8).map(str.strip)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_own_cells_survive_the_way_through_a_file(cells: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["strategy", "fleet", "batch_per_gpu", "", "my column"])
    writer.writerows(["allreduce", "T4", "1", *row] for row in cells)

    written = with_predictions(
        parse_table(text.getvalue(), path="m.csv"), [_figures(1, 2, 3, 4)] * len(cells)
    )

    assert [tuple(row[3:5]) for row in _cells(written)[1:]] == cells


def test_columns_without_a_name_keep_each_its_own_cells() -> None:
    table = parse_table(",strategy,fleet,batch_per_gpu,\n7,asp-ps,T4,1,mine\n", path="m.csv")

    written = with_predictions(table, [_figures(1, 2, 3, 4)])

    assert _cells(written) == [
        ["", "strategy", "fleet", "batch_per_gpu", "", *NEW],
        ["7", "asp-ps", "T4", "1", "mine", "1", "2", "3", "4"],
    ]
