"""The spool against a list, and against disks and files that fail."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.report.parcels import ParcelKind
from spotwright_agent.report.spool import Spool, SpoolLimits, SpoolLockedError
from spotwright_agent.report.spool_file import Spooled
from tests.agent.report.reporting import LIMITS, SetClock, parcel
from tests.outside_tools import require_tool

_NOTICE = ParcelKind.NOTICE


def _numbers(batch: Spooled) -> list[int]:
    document = v1.Batch.FromString(batch.parcel.document)
    told = [int(each.detail) for each in document.notices]
    return [each.memory_used_bytes for each in document.samples] + told


def _drained(spool: Spool) -> list[int]:
    """Number, send and acknowledge everything; return what was in it."""
    found: list[int] = []
    sequence = 0
    while batch := (
        spool.numbered_after(sequence)
        or spool.number_next(notice=True)
        or spool.number_next(notice=False)
    ):
        assert batch.sequence is not None
        assert batch.sequence > sequence
        sequence = batch.sequence
        found += _numbers(batch)
    spool.forget_up_to(sequence)
    return found


class SpoolMachine(RuleBasedStateMachine):
    """What is put is there under one number until it is acknowledged, whatever comes between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.db"
        self.clock = SetClock()
        self.spool = Spool(self.path, limits=LIMITS, clock=self.clock)
        self.boot_id = self.spool.boot_id
        self.made = 0
        self.unsent: list[tuple[bool, int]] = []  # whether it is a notice, and which
        self.sent: dict[int, list[int]] = {}  # contents by number
        self.highest = 0
        self.discarded_count = self.told_dropped = 0

    @rule(notice=st.booleans(), jump=st.booleans())
    def put(self, notice: bool, jump: bool) -> None:
        self.made += 1
        self.clock.offset_ms += 10_000 if jump else 0
        kind = _NOTICE if notice else ParcelKind.TELEMETRY
        self.spool.put(parcel(self.made, clock=self.clock, kind=kind))
        self.unsent.append((notice, self.made))

    @rule(notice=st.booleans())
    def number(self, notice: bool) -> None:
        batch = self.spool.number_next(notice=notice)
        waiting = [number for of, number in self.unsent if of is notice]
        if batch is None:
            assert not waiting
            return
        found = _numbers(batch)
        assert found == waiting[: len(found)]
        assert batch.sequence is not None
        assert batch.sequence > self.highest
        self.highest = batch.sequence
        self.sent[batch.sequence] = found
        self.unsent = [each for each in self.unsent if each[1] not in found]
        self.told_dropped += batch.dropped_count

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        last = data.draw(st.sampled_from(sorted(self.sent)))
        gone = [each for each in self.sent if each <= last]
        assert self.spool.forget_up_to(last) == len(gone)
        for each in gone:
            del self.sent[each]

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.sent)))
        before = self.spool.dropped_total
        assert self.spool.discard(one)
        assert not self.spool.discard(one)
        del self.sent[one]
        self.discarded_count += self.spool.dropped_total - before

    @rule()
    def restart(self) -> None:
        self.spool.close()
        self.spool = Spool(self.path, limits=LIMITS, clock=self.clock)

    @invariant()
    def what_was_sent_is_found_again_in_order(self) -> None:
        found, sequence = {}, 0
        while batch := self.spool.numbered_after(sequence):
            assert batch.sequence is not None
            sequence = batch.sequence
            found[sequence] = _numbers(batch)
        assert found == self.sent
        assert list(found) == sorted(found)
        assert self.spool.boot_id == self.boot_id
        assert self.spool.problem == ""
        assert self.told_dropped <= self.discarded_count

    def teardown(self) -> None:
        assert sorted(_drained(self.spool)) == sorted(
            [number for some in self.sent.values() for number in some]
            + [number for _, number in self.unsent]
        )
        assert self.spool.batch_count == self.spool.document_bytes == 0
        self.spool.close()
        self.folder.cleanup()


TestSpoolAgainstAList = SpoolMachine.TestCase
TestSpoolAgainstAList.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_the_oldest_telemetry_goes_first_and_is_counted_and_notices_stay(tmp_path: Path) -> None:
    clock = SetClock()
    limits = SpoolLimits(max_bytes=3 * 2**20, keep_free_bytes=0)
    spool = Spool(tmp_path / "spool.db", limits=limits, clock=clock)
    spool.put(parcel(0, clock=clock, kind=_NOTICE))
    for number in range(1, 4_001):
        clock.offset_ms += 100
        spool.put(parcel(number, clock=clock, gpu_count=64))
    files = sum(file.stat().st_size for file in tmp_path.iterdir())
    dropped = spool.dropped_total

    found = _drained(spool)

    assert files <= limits.max_bytes
    assert dropped > 0
    assert found == [0, *range(dropped + 1, 4_001)]
    spool.close()


def test_what_is_too_old_goes_although_the_wall_clock_is_wrong(tmp_path: Path) -> None:
    clock = SetClock()
    limits = SpoolLimits(max_age_s=3_600, keep_free_bytes=0)
    spool = Spool(tmp_path / "spool.db", limits=limits, clock=clock)
    spool.put(parcel(1, clock=clock))
    clock.offset_ms += 10**10  # not older by that
    spool.put(parcel(2, clock=clock))
    assert spool.dropped_total == 0
    clock.since_boot_ms += 3_601_000
    spool.put(parcel(3, clock=clock))
    assert spool.dropped_total == 2
    batch = spool.number_next(notice=False)
    assert batch is not None
    assert (batch.dropped_count, _numbers(batch)) == (2, [3])
    spool.close()


@pytest.mark.parametrize("in_memory", [False, True])
def test_only_the_newest_notices_are_kept(tmp_path: Path, in_memory: bool) -> None:
    clock = SetClock()
    limits = SpoolLimits(keep_free_bytes=2**60 if in_memory else 0)
    spool = Spool(tmp_path / "spool.db", limits=limits, clock=clock)
    for number in range(1_020):
        spool.put(parcel(number, clock=clock, kind=_NOTICE))
    assert _drained(spool) == list(range(20, 1_020))
    spool.close()


def test_a_disk_that_is_for_others_is_left_alone_and_memory_is_bounded(tmp_path: Path) -> None:
    clock = SetClock()
    limits = SpoolLimits(keep_free_bytes=2**60, memory_bytes=20_000)
    spool = Spool(tmp_path / "spool.db", limits=limits, clock=clock)
    for number in range(1, 201):
        spool.put(parcel(number, clock=clock))
    assert "left" in spool.problem
    assert spool.batch_count < 20
    found, dropped = _drained(spool), spool.dropped_total
    assert found == list(range(dropped + 1, 201))
    assert dropped > 0
    spool.close()


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    require_tool("mount")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as others, suppress(OSError):
        while True:
            others.write(b"x" * 4_096)


def test_a_full_disk_loses_nothing_that_fits_into_memory(tmp_path: Path) -> None:
    clock = SetClock()
    limits = SpoolLimits(keep_free_bytes=200 * 1024)
    with _small_disk(tmp_path / "disk") as disk:
        spool = Spool(disk / "spool.db", limits=limits, clock=clock)
        for number in range(1, 51):
            clock.offset_ms += 2_000
            spool.put(parcel(number, clock=clock))
        free = shutil.disk_usage(disk).free
        (disk / "others").write_bytes(b"x" * (free - 100 * 1024))
        spool.put(parcel(51, clock=clock))
        assert "for others" in spool.problem
        _fill(disk / "others")
        for number in range(52, 1_001):
            clock.offset_ms += 2_000
            clock.since_boot_ms += 1_000
            spool.put(parcel(number, clock=clock))
        first = spool.number_next(notice=False)  # numbers are written even now
        assert first is not None
        assert _numbers(first) == [1]
        (disk / "others").unlink()
        clock.since_boot_ms += 60_000
        spool.put(parcel(1_001, clock=clock))
        assert spool.problem == ""
        spool.close()

        again = Spool(disk / "spool.db", limits=limits, clock=clock)
        resent = again.numbered_after(0)
        assert resent is not None
        assert (resent.sequence, _numbers(resent)) == (first.sequence, [1])
        assert _drained(again) == list(range(1, 1_002))
        assert again.dropped_total == 0
        again.close()


def test_a_disk_that_is_full_to_the_last_byte_harms_nothing(tmp_path: Path) -> None:
    clock = SetClock()
    with _small_disk(tmp_path / "disk") as disk:
        spool = Spool(disk / "spool.db", limits=LIMITS, clock=clock)
        _fill(disk / "others")
        for number in range(1, 501):
            clock.since_boot_ms += 1_000
            clock.offset_ms += 2_000
            spool.put(parcel(number, clock=clock))
        assert "full" in spool.problem
        (disk / "others").unlink()
        clock.since_boot_ms += 60_000
        spool.put(parcel(501, clock=clock))
        assert spool.problem == ""
        assert _drained(spool) == list(range(1, 502))
        spool.close()


@pytest.mark.parametrize("damage", ["garbage", "header", "middle"])
def test_a_damaged_file_is_moved_aside_and_a_new_stream_begins(tmp_path: Path, damage: str) -> None:
    clock, path = SetClock(), tmp_path / "spool.db"
    spool = Spool(path, limits=LIMITS, clock=clock)
    boot_id = spool.boot_id
    for number in range(1, 501):
        clock.offset_ms += 2_000
        spool.put(parcel(number, clock=clock))
    spool.close()
    content = bytearray(path.read_bytes())
    if damage == "garbage":
        content = bytearray(b"not a database" * 1_000)
    elif damage == "header":
        content[:200] = bytes(200)
    else:
        content[4_096:] = bytes(0xA5 ^ each for each in content[4_096:])
    path.write_bytes(content)

    spool = Spool(path, limits=LIMITS, clock=clock)
    problem = spool.problem
    spool.put(parcel(501, clock=clock))
    clock.since_boot_ms += 60_000
    spool.put(parcel(502, clock=clock))

    assert _drained(spool) == [501, 502]
    assert "damaged" in problem
    assert spool.boot_id != boot_id
    assert spool.problem == ""
    assert (tmp_path / "spool.db.damaged").exists()
    spool.close()


def test_a_second_agent_is_told_that_the_folder_is_taken(tmp_path: Path) -> None:
    first = Spool(tmp_path / "spool.db", limits=LIMITS)
    with pytest.raises(SpoolLockedError, match="another agent"):
        Spool(tmp_path / "spool.db", limits=LIMITS)
    first.close()
    Spool(tmp_path / "spool.db", limits=LIMITS).close()


def test_a_folder_that_cannot_be_made_leaves_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    clock = SetClock()
    spool = Spool(tmp_path / "file" / "spool.db", limits=LIMITS, clock=clock)
    spool.put(parcel(1, clock=clock))
    assert "cannot be made" in spool.problem
    assert _drained(spool) == [1]
    spool.close()


@contextmanager
def _state_that_comes_back(tmp_path: Path, clock: SetClock) -> Iterator[tuple[Spool, Spool]]:
    """Give a spool with a file that is put away, and one that starts without; end with the file."""
    state, away = tmp_path / "state", tmp_path / "away"
    old = Spool(state / "spool.db", limits=LIMITS, clock=clock)
    for number in (1, 2, 3):
        old.put(parcel(number, clock=clock))
    old.put(parcel(4, clock=clock, kind=_NOTICE))
    old.number_next(notice=True)
    old.number_next(notice=False)  # takes in all of its kind
    old.put(parcel(5, clock=clock))
    old.close()
    state.rename(away)
    state.write_text("not mounted yet")
    spool = Spool(state / "spool.db", limits=LIMITS, clock=clock)
    spool.put(parcel(6, clock=clock))
    yield old, spool
    state.unlink()
    away.rename(state)
    clock.since_boot_ms += 20_000
    spool.put(parcel(7, clock=clock))
    assert spool.problem == ""


def test_a_state_folder_that_comes_late_keeps_its_batches_and_takes_those_of_memory(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    with _state_that_comes_back(tmp_path, clock) as (old, spool):
        pass

    assert spool.boot_id == old.boot_id
    assert _drained(spool) == [4, 1, 2, 3, 5, 6, 7]
    assert spool.dropped_total == 0
    spool.close()


def test_what_was_sent_in_another_stream_is_counted_and_its_notices_are_told_again(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    with _state_that_comes_back(tmp_path, clock) as (old, spool):
        sent = spool.number_next(notice=False)
    assert sent is not None

    assert spool.boot_id != old.boot_id
    assert _drained(spool) == [6, 4, 5, 7]
    assert spool.dropped_total == 3
    spool.close()
