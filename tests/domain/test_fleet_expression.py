import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.errors import FleetExpressionError
from spotwright.domain.fleet import Role
from spotwright.domain.fleet_expression import FunctionTerm, NodeTerm, Term, format_terms, parse
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market

WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,15}", fullmatch=True)
COUNTS = st.integers(min_value=1, max_value=1_000_000)
NODE_TERMS = st.builds(
    NodeTerm,
    type_name=WORDS.filter(lambda word: word != "lambda"),
    role=st.sampled_from(Role),
    gpu_count=st.none() | COUNTS,
    node_count=COUNTS,
    zone=st.none() | st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True),
    market=st.none() | st.sampled_from(Market),
)
FUNCTION_TERMS = st.builds(FunctionTerm, memory_mb=COUNTS, function_count=COUNTS)
FLEETS = st.lists(NODE_TERMS | FUNCTION_TERMS, min_size=1, max_size=5).map(tuple)


def _without_columns(terms: tuple[Term, ...]) -> list[Term]:
    return [replace(term, column=1) for term in terms]


@given(FLEETS)
def test_a_printed_fleet_reads_back_the_same(fleet: tuple[Term, ...]) -> None:
    assert _without_columns(parse(format_terms(fleet))) == list(fleet)


@given(FLEETS, st.sampled_from(["", " ", "   ", "\t", "\n"]))
def test_space_around_signs_does_not_matter(fleet: tuple[Term, ...], space: str) -> None:
    spaced = format_terms(fleet).replace(" ", "")
    for sign in "+*@/:":
        spaced = spaced.replace(sign, f"{space}{sign}{space}")

    assert _without_columns(parse(spaced)) == list(fleet)


def test_every_part_of_a_term_is_read() -> None:
    assert parse("g4dn.12xlarge:4*2@use1-az4/spot + ps=m5.xlarge") == (
        NodeTerm(
            type_name="g4dn.12xlarge",
            gpu_count=4,
            node_count=2,
            zone="use1-az4",
            market=Market.SPOT,
        ),
        NodeTerm(type_name="m5.xlarge", role=Role.PS, column=35),
    )


def test_functions_are_megabytes_times_count() -> None:
    assert parse("lambda:2560*8") == (FunctionTerm(memory_mb=2560, function_count=8),)


@pytest.mark.parametrize("cloud", list(Cloud))
def test_every_name_in_the_catalog_can_be_written(cloud: Cloud) -> None:
    snapshot = load_snapshot(bundled_path(cloud))
    zones = {price.zone for price in snapshot.prices}

    for name in [*snapshot.instance_types, *snapshot.gpus]:
        assert parse(name) == (NodeTerm(type_name=name),)
    for zone in zones:
        assert parse(f"T4@{zone}") == (NodeTerm(type_name="T4", zone=zone),)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected an instance type or GPU name, found the end"),
        ("   ", 4, "found the end"),
        ("K80 +", 6, "expected an instance type or GPU name, found the end"),
        ("K80 + + T4", 7, "found '+'"),
        ("4xK80", 1, "found '4'"),
        ("K80, T4", 4, "expected '+' and another group, found ','"),
        ("K80*0", 5, "the number of nodes must be from 1"),
        ("K80*-1", 5, "the number of nodes (a whole number), found '-'"),
        ("K80*2.5", 6, "expected '+'"),
        ("K80*", 5, "found the end"),
        ("K80*٣", 5, "found '٣'"),
        ("K80*" + "9" * 5000, 5, "from 1 to 1,000,000, got 999999999999"),
        ("K80:0", 5, "the number of GPUs must be from 1"),
        ("K80*2:4", 6, "expected '+'"),
        ("g5.xlarge@/spot", 11, "a zone id"),
        ("g5.xlarge/spott", 11, "unknown market 'spott', did you mean 'spot'?"),
        ("g5.xlarge/cheap", 11, "a market is spot or on-demand"),
        ("g5.xlarge/spot@use1-az1", 15, "expected '+'"),
        ("T4 + ps=lambda:128", 6, "functions cannot be parameter servers"),
        ("T4 + lambda", 12, "lambda needs its memory"),
        ("lambda:2560*8/spot", 14, "expected '+'"),
        ("ps =m5.xlarge", 4, "found '='"),
        ("T4\n\t+ %", 7, "found '%'"),
    ],
)
def test_an_error_points_at_the_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(FleetExpressionError) as caught:
        parse(text)

    assert caught.value.column == column
    assert problem in str(caught.value)
    _, shown, pointer = str(caught.value).split("\n")
    assert pointer.index("^") == 2 + column - 1
    assert len(shown) == 2 + len(text)


@given(st.text() | st.text(alphabet="gp4.*:@/+=-lambda 0189"))
def test_any_text_is_a_fleet_or_a_fleet_expression_error(text: str) -> None:
    with contextlib.suppress(FleetExpressionError):
        assert parse(format_terms(parse(text)))
