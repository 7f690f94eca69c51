"""Whatever is wrong with a measurements file, the complaint names the line and the cell."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.measurements.read import (
    Table,
    configurations,
    measurements,
    parse_table,
    read_table,
)
from spotwright.domain.errors import MeasurementsError
from spotwright.domain.measurement import Configuration
from spotwright.domain.workload import Strategy

HEADER = "strategy,fleet,batch_per_gpu,step_s,cluster_steps_per_s\n"
GOOD = "allreduce,g4dn.12xlarge:4*2,32,0.25,\n"


def _table(text: str) -> Table:
    return parse_table(text, path="m.csv")


def _error(text: str) -> MeasurementsError:
    with pytest.raises(MeasurementsError) as caught:
        measurements(_table(text))
    return caught.value


def _row(**cells: str) -> str:
    """Return a file whose third line has these cells changed and whose second line is good."""
    names = HEADER.strip().split(",")
    return HEADER + GOOD + ",".join(cells.get(n, c) for n, c in zip(names, _cells(), strict=True))


def _cells() -> list[str]:
    return GOOD.strip().split(",")


def test_the_good_row_is_good_so_that_each_change_alone_is_to_blame() -> None:
    (first, second) = measurements(_table(_row()))

    assert (first.step_s, second.step_s) == (0.25, 0.25)
    assert (first.configuration.line, second.configuration.line) == (2, 3)


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", None, "the file is empty"),
        (HEADER, None, "there are no rows below the header"),
        (HEADER + "\n\n", None, "there are no rows below the header"),
        (HEADER.replace("batch_per_gpu", "batch_per_gpus") + GOOD, 1,
         "the column 'batch_per_gpu' is missing; is 'batch_per_gpus' meant to be it?"),
        (HEADER.replace("fleet", "Fleet") + GOOD, 1,
         "the column 'fleet' is missing; is 'Fleet' meant to be it?"),
        (HEADER.replace("strategy", "x") + GOOD, 1, "the column 'strategy' is missing"),
        (HEADER.replace("cluster_steps_per_s", "step_s") + GOOD, 1,
         "the column 'step_s' is given twice"),
        ("strategy,fleet,batch_per_gpu\nallreduce,T4,32\n", 1,
         "no measured speed: add a column 'step_s' or 'cluster_steps_per_s'"),
        (_row(step_s="nan"), 3, "step_s is nan: it must be a positive, finite number"),
        (_row(step_s="inf"), 3, "step_s is inf: it must be a positive, finite number"),
        (_row(step_s="1e999"), 3, "step_s is 1e999: it must be a positive, finite number"),
        (_row(step_s="0"), 3, "step_s is 0: it must be a positive, finite number"),
        (_row(step_s="-0.1"), 3, "step_s is -0.1: it must be a positive, finite number"),
        (_row(step_s="0.25 s"), 3, "step_s is '0.25 s', not a number"),
        (_row(step_s="", cluster_steps_per_s="-3"), 3, "cluster_steps_per_s is -3: it must be"),
        (_row(cluster_steps_per_s="8"), 3, "give exactly one of step_s and cluster_steps_per_s"),
        (_row(step_s=""), 3, "give exactly one of step_s and cluster_steps_per_s"),
        (_row(batch_per_gpu="32.5"), 3, "batch_per_gpu is 32.5, not a whole number"),
        (_row(batch_per_gpu="0"), 3, "batch_per_gpu is 0: it must be a positive"),
        (_row(batch_per_gpu=""), 3, "batch_per_gpu is empty"),
        (_row(batch_per_gpu="many"), 3, "batch_per_gpu is 'many', not a number"),
        (_row(fleet=""), 3, "fleet is empty"),
        (_row(strategy="all-reduce"), 3, "unknown strategy 'all-reduce'; did you mean allreduce?"),
        (_row(strategy="asp_ps"), 3, "unknown strategy 'asp_ps'; did you mean asp-ps?"),
        (_row(strategy="gossip"), 3, "did you mean asp-ps, bsp-ps, allreduce, serverless?"),
        (_row(strategy=""), 3, "unknown strategy ''"),
        (_row(cluster_steps_per_s=",surplus"), 3, "more cells than columns"),
        (_row(fleet='"' + "x" * 200_000), 3, "not CSV: field larger than field limit"),
    ],
)  # fmt: skip
def test_a_complaint_names_the_line(text: str, line: int | None, complaint: str) -> None:
    error = _error(text)

    assert error.line == line
    assert complaint in str(error)
    assert str(error).startswith("m.csv: " if line is None else f"m.csv:{line}: ")


@pytest.mark.parametrize(
    ("column", "cell", "complaint"),
    [
        ("ps_count", "1.5", "ps_count is 1.5, not a whole number"),
        ("ps_count", "-1", "ps_count is -1: it must be a positive"),
        ("tensor_count", "2.5", "tensor_count is 2.5, not a whole number"),
        ("parameter_bytes", "0", "parameter_bytes is 0: it must be a positive"),
        ("parameter_bytes", "100 MB", "parameter_bytes is '100 MB', not a number"),
        ("flops_per_sample", "nan", "flops_per_sample is nan: it must be a positive"),
    ],
)
def test_optional_cells_are_checked_as_well(column: str, cell: str, complaint: str) -> None:
    text = f"strategy,fleet,batch_per_gpu,{column}\nasp-ps,T4,32,\nasp-ps,T4,32,{cell}\n"

    with pytest.raises(MeasurementsError, match=r"m\.csv:3: ") as caught:
        configurations(_table(text))

    assert complaint in str(caught.value)


def test_blank_lines_are_skipped_and_still_counted() -> None:
    assert _error(HEADER + "\n" + GOOD + "\n" + GOOD.replace("32", "x")).line == 5


def test_every_column_arrives_in_its_place() -> None:
    text = (
        "model,tensor_count,ps_type,ps_count,flops_per_sample,parameter_bytes,batch_per_gpu,"
        "fleet,strategy,cluster_steps_per_s\n"
        "vgg,38,m5.xlarge,2,1.18e11,5.74e8,64,p3.2xlarge*3,asp-ps,4.5\n"
    )

    (row,) = measurements(_table(text))

    assert row.configuration == Configuration(
        line=2,
        strategy=Strategy.ASP_PS,
        fleet="p3.2xlarge*3",
        batch_per_gpu=64,
        model="vgg",
        ps_count=2,
        ps_type="m5.xlarge",
        parameter_bytes=5.74e8,
        tensor_count=38,
        flops_per_sample=1.18e11,
    )
    assert row.worker_step_s(3) == pytest.approx(3 / 4.5)


@pytest.mark.parametrize(
    "written",
    [
        HEADER + GOOD,
        "\ufeff" + HEADER + GOOD,
        (HEADER + GOOD).replace("\n", "\r\n"),
        (HEADER + GOOD).replace("\n", "\r"),
        HEADER + 'allreduce,"g4dn.12xlarge:4*2","32","0.25",\n',
        HEADER.replace(",", " , ") + GOOD.replace(",", " , "),
        HEADER + 'allreduce, "g4dn.12xlarge:4*2" , 32, 0.25,\n',
        HEADER + GOOD.rstrip(",\n"),
    ],
    ids=["plain", "bom", "crlf", "cr", "quoted", "spaced", "spaced and quoted", "short"],
)
def test_one_row_reads_the_same_however_a_program_writes_it(tmp_path: Path, written: str) -> None:
    file = tmp_path / "m.csv"
    file.write_bytes(written.encode())

    assert measurements(read_table(file)) == measurements(_table(HEADER + GOOD))


@pytest.mark.parametrize(
    ("header", "row"), [("," + HEADER, "7," + GOOD), (HEADER[:-1] + ",\n", GOOD[:-1] + ",\n")]
)
def test_a_column_without_a_name_as_pandas_writes_its_index_does_no_harm(
    header: str, row: str
) -> None:
    assert measurements(_table(header + row)) == measurements(_table(HEADER + GOOD))


def test_a_fleet_with_a_comma_in_quotes_stays_one_cell() -> None:
    (row,) = configurations(_table(HEADER + 'allreduce,"T4 + T4, x",32,,\n'))

    assert row.fleet == "T4 + T4, x"


@pytest.mark.parametrize("columns", ["strategy,fleet,batch_per_gpu", HEADER.strip()])
def test_a_configuration_needs_no_result_nor_its_columns(columns: str) -> None:
    (row,) = configurations(_table(f"{columns}\nbsp-ps,T4*2,32\n"))

    assert row == Configuration(line=2, strategy=Strategy.BSP_PS, fleet="T4*2", batch_per_gpu=32)


def test_a_file_that_is_not_there_a_folder_and_bytes_say_what_they_are(tmp_path: Path) -> None:
    latin = tmp_path / "latin.csv"
    latin.write_bytes("strategy,fleet,batch_per_gpu\nallreduce,caf\xe9,1\n".encode("latin-1"))

    for path, problem in (
        (tmp_path / "absent.csv", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (latin, "not UTF-8 text"),
    ):
        with pytest.raises(MeasurementsError) as caught:
            read_table(path)
        assert str(caught.value) == f"{path}: cannot be read: {problem}"


@given(st.text(), st.text(alphabet='",\n\r x1.-'))
def test_any_text_reads_or_is_a_measurements_error(header: str, rows: str) -> None:
    for text in (header + rows, HEADER + rows):
        with contextlib.suppress(MeasurementsError):
            measurements(_table(text))
