"""Pools in a job file: excluded for ever or for a while, and pinned."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from spotwright.adapters.jobfile.read import LoadedJob, parse_job
from spotwright.domain.errors import JobFileError, PinnedPoolError, UnknownNameError
from spotwright.domain.offer import Market, Pool
from tests.adapters.jobfile.example_jobs import SMALL

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
G5 = Pool("g5.xlarge", "use1-az4", Market.SPOT)
T4 = Pool("g4dn.xlarge", "use1-az1", Market.ON_DEMAND)
SHAPE = "is not a pool; write TYPE@ZONE/MARKET, such as g5.xlarge@use1-az4/spot"


def _loaded(*lines: str) -> LoadedJob:
    """Read the small job with these lines, from line 14 on, below its limits."""
    text = "".join(f"  {line}\n" for line in lines)
    return parse_job(SMALL + text, path="job.yaml")


def _complaints(*lines: str) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        _loaded(*lines)
    return str(caught.value).split("\n")


def test_a_pool_is_excluded_for_ever_or_until_a_time() -> None:
    limits = _loaded(
        "exclude_pools:",
        "- g4dn.xlarge@use1-az1/on-demand",
        "- {pool: g5.xlarge@use1-az4/spot, until: 2026-11-16T12:00:00Z}",
    ).spec.limits

    assert limits.excluded_pools == {T4: None, G5: NOON}


@pytest.mark.parametrize(
    "written",
    ["2026-11-16T12:00:00Z", "2026-11-16 12:00:00+00:00", "2026-11-16T14:00+02:00",
     '"2026-11-16T12:00:00.000Z"'],
)  # fmt: skip
def test_a_time_is_read_in_any_timezone(written: str) -> None:
    limits = _loaded(f"exclude_pools: [{{pool: {G5}, until: {written}}}]").spec.limits

    assert limits.excluded_pools == {G5: NOON}


def test_pins_and_the_most_parameter_servers_are_counts() -> None:
    limits = _loaded(
        "pin_pools: {g5.xlarge@use1-az4/spot: 3, g4dn.xlarge@use1-az1/on-demand: 1}",
        "max_parameter_servers: 2",
    ).spec.limits

    assert limits.min_count_by_pool == {G5: 3, T4: 1}
    assert limits.max_parameter_servers == 2
    assert _loaded().spec.limits.max_parameter_servers == 4


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["exclude_pools:", f"- {T4}", "- g5.xlarge@use1-az4"],
         f"job.yaml:16: limits.exclude_pools.1.pool: 'g5.xlarge@use1-az4' {SHAPE}"),
        (["exclude_pools:", "-"], f"job.yaml:15: limits.exclude_pools.0.pool: 'None' {SHAPE}"),
        (["exclude_pools:", "- pool: g5.xlarge", "  until: 2026-11-16T12:00:00Z"],
         f"job.yaml:15: limits.exclude_pools.0.cool-down.pool: 'g5.xlarge' {SHAPE}"),
        (["exclude_pools:", f"- pool: {G5}", "  until: 2026-11-16T12:00:00"],
         "job.yaml:16: limits.exclude_pools.0.cool-down.until: '2026-11-16T12:00:00' has no "
         "timezone; for UTC write 2026-11-16T12:00:00Z"),
        (["exclude_pools:", f"- pool: {G5}", "  until: 2026-11-16"], "2026-11-16T00:00:00Z"),
        (["exclude_pools:", f"- pool: {G5}", "  until: tomorrow"],
         "cannot read 'tomorrow' as a time such as 2026-11-16T12:00:00Z"),
        (["exclude_pools:", f"- pool: {G5}"],
         "job.yaml:15: 'limits.exclude_pools.0.cool-down.until' is missing; add it"),
        ([f"exclude_pools: [{G5}, {T4}, {G5}]"],
         f"job.yaml:14: limits.exclude_pools: {G5} is given twice: keep one"),
        (["pin_pools:", f"  {T4}: 1", "  g5.xlarge@b/sport: 1"],
         f"job.yaml:16: limits.pin_pools.g5.xlarge@b/sport: 'g5.xlarge@b/sport' {SHAPE}"),
        (["pin_pools:", f"  {T4}: 0"], f"job.yaml:15: limits.pin_pools.{T4}: cannot read '0'"),
        (["pin_pools:", f"  {T4}: 1.5"], "cannot read '1.5' as a whole number"),
    ],
)  # fmt: skip
def test_a_bad_pool_time_or_count_is_told_with_its_line(lines: list[str], complaint: str) -> None:
    (told,) = _complaints(*lines)

    assert complaint in told


@pytest.mark.parametrize(
    ("lines", "limit"),
    [
        ([f"  {G5}: 1", f"exclude_pools: [{G5}]"], "limits.exclude_pools"),
        ([f"  {G5}: 1", "exclude_types: [g5.xlarge]"], "limits.exclude_types"),
        ([f"  {G5}: 1", "types: [g4dn.xlarge]"], "limits.types"),
        ([f"  {G5}: 1", "zones: [use1-az1]"], "limits.zones"),
        ([f"  {G5}: 1", "markets: [on-demand]"], "limits.markets"),
        ([f"  {G5}: 3", "max_count: {g5.xlarge: 2}"], "limits.max_count of g5.xlarge, 2"),
        ([f"  {G5}: 3", "max_count_per_pool: 2"], "limits.max_count_per_pool, 2"),
        ([f"  {G5}: 9"], "limits.max_nodes, 8"),
    ],
)
def test_a_pin_that_clashes_with_another_limit_is_told_at_the_line_of_the_pin(
    lines: list[str], limit: str
) -> None:
    (told,) = _complaints("pin_pools:", *lines)

    assert told.startswith("job.yaml:15: ")
    assert limit in told


def test_all_clashes_are_told_at_once_each_with_its_line() -> None:
    told = _complaints(f"exclude_pools: [{T4}]", "pin_pools:", f"  {G5}: 9", f"  {T4}: 1",
                       "max_count_per_pool: 8")  # fmt: skip

    lines = [complaint.split(": ")[0] for complaint in told]
    assert lines == ["job.yaml:16", "job.yaml:17", "job.yaml:17"]


def test_a_pool_that_cools_down_may_be_pinned() -> None:
    limits = _loaded(
        f"exclude_pools: [{{pool: {G5}, until: 2026-11-16T12:00:00Z}}]", f"pin_pools: {{{G5}: 1}}"
    ).spec.limits

    assert limits.min_count_by_pool == {G5: 1}


def test_pins_in_two_zones_clash_with_the_one_zone_that_allreduce_has_unless_told() -> None:
    ring = SMALL.replace("asp-ps", "allreduce") + f"  pin_pools: {{{G5}: 1, {T4}: 1}}\n"

    with pytest.raises(JobFileError, match=r"job\.yaml:14: pins in use1-az1, use1-az4 need"):
        parse_job(ring, path="job.yaml")

    assert parse_job(ring + "  placement: one-region\n", path="job.yaml").spec.name == "small"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UnknownNameError("instance type", "g5.xlrge", known=[]), 15),
        (UnknownNameError("zone", "use1-az44", known=[]), 16),
        (UnknownNameError("zone", "use1-az55", known=[]), 18),
        (PinnedPoolError("x", pool="g5.xlarge@use1-az55/spot"), 18),
    ],
)
def test_a_name_inside_a_pool_is_found_in_the_file(
    error: UnknownNameError | PinnedPoolError, line: int
) -> None:
    loaded = _loaded(
        "exclude_pools:",
        "- g5.xlrge@use1-az4/spot",
        "- {pool: g5.xlarge@use1-az44/spot, until: 2026-11-16T12:00:00Z}",
        "pin_pools:",
        "  g5.xlarge@use1-az55/spot: 1",
    )

    assert loaded.locate(error).line == line


def test_a_time_keeps_the_timezone_it_was_written_in() -> None:
    limits = _loaded(f"exclude_pools: [{{pool: {G5}, until: 2026-11-16T14:00+02:00}}]").spec.limits

    (until,) = limits.excluded_pools.values()
    assert until is not None
    assert until.tzinfo == timezone(timedelta(hours=2))
