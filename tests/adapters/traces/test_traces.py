import gzip
from pathlib import Path

import pytest

from spotwright.adapters.traces.bundled import BUNDLED, bundled_bytes, bundled_campaigns
from spotwright.adapters.traces.csv_campaigns import read_csv_campaigns
from spotwright.domain.errors import BadInputError

TRACES = "trace_id,t_seconds,nodes\none,0,0\none,60,1\none,90,1\none,120,0\ntwo,0,4\ntwo,50,2\n"


def test_bundled_campaigns_are_small_and_hold_what_their_authors_published() -> None:
    found = {campaign.name: campaign for campaign in bundled_campaigns()}
    zone = found["availability:1-node:aws-02-15-2023:us-west-2a_v100_1"]

    assert BUNDLED.stat().st_size < 20_000
    assert len(found) == 11
    assert zone.nodes.end_s / 3600 == pytest.approx(1091.89, abs=0.01)
    assert zone.nodes.mean(zone.nodes.end_s) == pytest.approx(0.883, abs=1e-3)


def test_campaigns_come_back_from_a_bundled_file(tmp_path: Path) -> None:
    file = tmp_path / "again.json.gz"
    file.write_bytes(bundled_bytes(bundled_campaigns(), ["a test"]))

    assert bundled_campaigns(file) == bundled_campaigns()


def test_csv_rows_hold_until_the_next(tmp_path: Path) -> None:
    file = tmp_path / "traces.csv.gz"
    file.write_bytes(gzip.compress(TRACES.encode()))

    one, two = read_csv_campaigns(file)

    assert (one.nodes.times_s, one.nodes.values) == ((0.0, 60.0, 120.0), (0.0, 1.0, 0.0))
    assert (two.target_nodes, two.nodes.end_s) == (4, 50.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("trace_id,nodes\n", "t_seconds are missing"),
        ("trace_id,t_seconds,nodes\n", "no traces"),
        ("trace_id,t_seconds,nodes\na,0,many\n", "'many' is not a number"),
    ],
)
def test_what_is_no_table_of_traces_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "traces.csv"
    file.write_text(text)

    with pytest.raises(BadInputError, match=complaint):
        read_csv_campaigns(file)
