import errno
import json
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.catalog.snapshot_file import (
    FileSnapshotStore,
    bundled_path,
    load_snapshot,
    write_snapshot,
)
from spotwright.adapters.catalog.snapshot_format import encode
from spotwright.domain.catalog import QuotaKey, Snapshot
from spotwright.domain.errors import CatalogFileError, OutsideWorldError
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market
from spotwright.usecases.ports import SnapshotStore
from tests.contracts.offer_source import small_market


def full_market() -> Snapshot:
    return replace(
        small_market(),
        vcpu_quotas={
            QuotaKey("us-east-1", "g-vt", Market.SPOT): 64,
            QuotaKey("us-east-1", "g-vt", Market.ON_DEMAND): 0,
        },
        placement_scores={("g5.xlarge", "use1-az1"): 9, ("g5.xlarge", "use1-az2"): 1},
    )


def document() -> dict[str, Any]:
    found = json.loads(encode(full_market()))
    assert isinstance(found, dict)
    return found


def load_text(folder: Path, text: str) -> Snapshot:
    path = folder / "aws.json"
    path.write_text(text, encoding="utf-8")
    return load_snapshot(path)


def test_a_snapshot_reads_back_as_it_was_written(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "aws.json", full_market())

    assert load_snapshot(tmp_path / "aws.json") == full_market()


@pytest.mark.parametrize("cloud", list(Cloud))
def test_bundled_snapshots_are_written_back_byte_for_byte(cloud: Cloud, tmp_path: Path) -> None:
    write_snapshot(tmp_path / "again.json", load_snapshot(bundled_path(cloud)))

    assert (tmp_path / "again.json").read_bytes() == bundled_path(cloud).read_bytes()


def test_the_order_of_the_parts_does_not_change_the_text() -> None:
    market = full_market()
    shuffled = replace(
        market,
        prices=market.prices[::-1],
        gpus=dict(sorted(market.gpus.items(), reverse=True)),
        vcpu_quotas=dict(list(market.vcpu_quotas.items())[::-1]),
    )

    assert encode(shuffled) == encode(market)


def test_one_changed_price_is_one_changed_line() -> None:
    market = full_market()
    dearer = replace(market.prices[0], spot_usd_per_hour=0.21)
    changed = replace(market, prices=(dearer, *market.prices[1:]))

    lines = zip(encode(market).splitlines(), encode(changed).splitlines(), strict=True)

    assert [after for before, after in lines if before != after] == [
        '["g4dn.xlarge","use1-az1",0.526,0.21],'
    ]


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    whole = encode(full_market()).rstrip()

    for length in range(len(whole)):
        with pytest.raises(CatalogFileError, match="go back to the bundled catalog"):
            load_text(tmp_path, whole[:length])


def test_the_bundled_file_cut_short_is_refused(tmp_path: Path) -> None:
    whole = bundled_path(Cloud.AWS).read_text(encoding="utf-8").rstrip()

    for length in range(0, len(whole), len(whole) // 40):
        with pytest.raises(CatalogFileError):
            load_text(tmp_path, whole[:length])


@given(place=st.integers(0, len(encode(full_market())) - 1), byte=st.integers(0, 255))
def test_one_changed_byte_is_read_or_refused_but_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    content = bytearray(encode(full_market()).encode())
    content[place] = byte
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_bytes(content)

    with suppress(CatalogFileError):
        assert isinstance(load_snapshot(path), Snapshot)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"9" * 5000, b"null", b"{}"])
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_bytes(content)

    with pytest.raises(CatalogFileError, match=r"aws\.json"):
        load_snapshot(tmp_path / "aws.json")


@pytest.mark.parametrize("section", sorted(document().keys()))
def test_a_missing_section_is_refused_by_name(section: str, tmp_path: Path) -> None:
    text = json.dumps({key: value for key, value in document().items() if key != section})

    with pytest.raises(CatalogFileError, match=section):
        load_text(tmp_path, text)


@pytest.mark.parametrize("section", sorted(document().keys()))
@pytest.mark.parametrize("wrong", [None, 1.5, "text", [1], [["a"]], {"a": 1}, True])
def test_a_section_of_the_wrong_type_is_refused(
    section: str, wrong: object, tmp_path: Path
) -> None:
    with pytest.raises(CatalogFileError):
        load_text(tmp_path, json.dumps(document() | {section: wrong}))


@pytest.mark.parametrize(
    "row",
    [
        '["g5.xlarge","use1-az1",0,0.2]',
        '["g5.xlarge","use1-az1",-1,0.2]',
        '["g5.xlarge","use1-az1",NaN,0.2]',
        '["g5.xlarge","use1-az1",1e999,0.2]',
        '["g5.xlarge","use1-az1","1.0",0.2]',
        '["g5.xlarge","use1-az1",true,0.2]',
        '["g5.xlarge","use1-az1",1.0]',
        '["g5.xlarge","nowhere",1.0,0.2]',
        '["no.such",  "use1-az1",1.0,0.2]',
        '[["g5.xlarge"],"use1-az1",1.0,0.2]',
        '["g5.xlarge","use1-az1",1.0,0.2],["g5.xlarge","use1-az1",1.0,0.2]',
        "",
    ],
)
def test_a_price_that_cannot_be_used_is_refused(row: str, tmp_path: Path) -> None:
    text = json.dumps(document() | {"prices": "HERE"}).replace('"HERE"', f"[{row}]")

    with pytest.raises(CatalogFileError):
        load_text(tmp_path, text)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("vcpu_count", 0),
        ("memory_gib", "16"),
        ("gpu_name", "no-such-gpu"),
        ("gpu_name", None),
        ("network_card_count", 1.5),
        ("retired", 1),
        ("colour", "red"),
    ],
)
def test_a_fact_that_cannot_be_used_is_refused_with_the_name_of_its_type(
    fact: str, value: object, tmp_path: Path
) -> None:
    changed = document()
    changed["instance_types"]["g5.xlarge"][fact] = value

    with pytest.raises(CatalogFileError, match=r"g5\.xlarge"):
        load_text(tmp_path, json.dumps(changed))


@pytest.mark.parametrize(
    ("section", "times", "complaint"),
    [
        ("price_times", {"us-east-1": "2026-08-22T14:28:00Z"}, "observation: us-west-2"),
        ("price_times", {"us-east-1": "2026-08-22T14:28:00"}, "has no time zone"),
        ("price_times", {"us-east-1": "in August"}, "in August"),
        ("retired_price_times", {}, r"observation: p2\.xlarge"),
    ],
)
def test_prices_of_unknown_age_are_refused(
    section: str, times: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(CatalogFileError, match=complaint):
        load_text(tmp_path, json.dumps(document() | {section: times}))


def test_a_snapshot_has_no_times_without_a_time_zone() -> None:
    market = full_market()
    naive = {region: time.replace(tzinfo=None) for region, time in market.price_times.items()}

    with pytest.raises(ValueError, match="us-east-1 needs a time zone"):
        replace(market, price_times=naive)


def test_a_file_of_another_cloud_is_refused_with_the_way_out(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "prices.json", small_market())

    with pytest.raises(CatalogFileError, match=r"prices\.json: describes aws, not gcp: give a"):
        load_snapshot(tmp_path / "prices.json", cloud=Cloud.GCP)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "aws.json"
    path.touch()
    path.chmod(mode)

    write_snapshot(path, small_market())

    assert path.stat().st_mode & 0o777 == mode


def test_a_new_file_can_be_read_by_all(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "aws.json", small_market())

    assert (tmp_path / "aws.json").stat().st_mode & 0o777 == 0o644


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "aws.json"
    markets = [full_market(), small_market()] * 8

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda market: write_snapshot(path, market), markets))

    assert load_snapshot(path) in markets
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_schema_says_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogFileError, match=r"newer Spotwright \(schema 7, this one reads up to 1\): upgrade"
    ):
        load_text(tmp_path, json.dumps({"schema_version": 7, "anything": "else"}))


@pytest.mark.parametrize("version", [0, -1, "1", True, 1.0])
def test_a_schema_that_never_was_is_refused(version: object, tmp_path: Path) -> None:
    with pytest.raises(CatalogFileError, match="schema_version"):
        load_text(tmp_path, json.dumps(document() | {"schema_version": version}))


def test_a_missing_file_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(CatalogFileError, match=r"none\.json: no such file"):
        load_snapshot(tmp_path / "none.json")


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogFileError, match="cannot be read"):
        load_snapshot(tmp_path)


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let the operating system refuse writes past a size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_half_way_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "aws.json"
    write_snapshot(path, small_market())

    with largest_file(40_000), pytest.raises(OutsideWorldError, match="previous one is kept") as e:
        write_snapshot(path, load_snapshot(bundled_path(Cloud.AWS)))

    assert isinstance(e.value.__cause__, OSError)
    assert e.value.__cause__.errno == errno.EFBIG
    assert load_snapshot(path) == small_market()
    assert list(tmp_path.iterdir()) == [path]


def test_a_snapshot_without_prices_never_replaces_a_good_one(tmp_path: Path) -> None:
    path = tmp_path / "aws.json"
    write_snapshot(path, small_market())

    with pytest.raises(ValueError, match="without prices"):
        write_snapshot(path, replace(small_market(), prices=()))

    assert load_snapshot(path) == small_market()


def test_the_store_gives_the_bundled_snapshot_until_one_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "state" / "catalog" / "aws.json"
    store: SnapshotStore = FileSnapshotStore(Cloud.AWS, refreshed=path)

    before = store.load()
    store.save(full_market())

    assert before == load_snapshot(bundled_path(Cloud.AWS))
    assert store.load() == full_market()


def test_the_store_never_passes_over_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_text("{", encoding="utf-8")

    with pytest.raises(CatalogFileError, match="go back to the bundled catalog"):
        FileSnapshotStore(Cloud.AWS, refreshed=tmp_path / "aws.json").load()


def test_the_store_of_one_cloud_refuses_another(tmp_path: Path) -> None:
    store = FileSnapshotStore(Cloud.GCP, refreshed=tmp_path / "gcp.json")
    write_snapshot(tmp_path / "gcp.json", small_market())

    with pytest.raises(CatalogFileError, match="describes aws, not gcp"):
        store.load()
    with pytest.raises(ValueError, match="store of gcp"):
        store.save(small_market())
