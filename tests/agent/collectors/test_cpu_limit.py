"""Quotas of control groups read from trees made like procfs and the kernel's own."""

from pathlib import Path

import pytest

from spotwright_agent.collectors.cpu_limit import CpuLimitCollector
from spotwright_agent.readings import CollectorError

V1 = "35 24 0:30 / {top} rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "36 24 0:31 / {top} rw,nosuid - cgroup2 cgroup2 rw\n"


class Host:
    """A host with one process that trains, number 7."""

    def __init__(self, root: Path, *, is_v2: bool, cpus: str = "0-3") -> None:
        self.procfs, self.top, self._is_v2 = root / "proc", root / "cgroup", is_v2
        mounts = "1 0 8:1 / / rw - ext4 /dev/sda rw\n" + (V2 if is_v2 else V1)
        self.write("self/mountinfo", mounts.format(top=self.top))
        self.write("7/status", f"Name:\tpython\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1\n")
        self.write("7/cgroup", "0::/job/task\n" if is_v2 else "1:cpu,cpuacct:/job/task\n0::/\n")
        for group in ("job", "job/task"):
            self.set(group, None)

    def write(self, name: str, text: str) -> None:
        path = self.procfs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def set(self, group: str, cpus: float | None, *, periods: int = 0, throttled: int = 0) -> None:
        folder = self.top / group
        folder.mkdir(parents=True, exist_ok=True)
        if self._is_v2:
            told = "max" if cpus is None else str(round(cpus * 100_000))
            (folder / "cpu.max").write_text(f"{told} 100000\n")
        else:
            (folder / "cpu.cfs_quota_us").write_text(
                f"{-1 if cpus is None else round(cpus * 20_000)}\n"
            )
            (folder / "cpu.cfs_period_us").write_text("20000\n")
        (folder / "cpu.stat").write_text(
            f"usage_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 9\n"
        )

    def collector(self, *pids: int) -> CpuLimitCollector:
        return CpuLimitCollector(self.procfs, lambda: pids or (7,))


both = pytest.mark.parametrize("is_v2", [False, True])


@both
def test_without_a_quota_it_is_the_cpus_that_a_process_may_run_on(
    tmp_path: Path, is_v2: bool
) -> None:
    host = Host(tmp_path, is_v2=is_v2, cpus="0-1,6")

    assert host.collector().read(0.0) == {"cpu_limit_count": 3.0}


@both
def test_a_quota_that_shrinks_is_seen_at_once_also_that_of_a_group_above(
    tmp_path: Path, is_v2: bool
) -> None:
    host = Host(tmp_path, is_v2=is_v2)
    collector = host.collector()
    assert collector.read(0.0)["cpu_limit_count"] == 4.0

    host.set("job/task", 2.0)
    assert collector.read(1.0)["cpu_limit_count"] == 2.0
    host.set("job", 0.5)
    assert collector.read(2.0)["cpu_limit_count"] == 0.5
    host.set("job", None)
    host.set("job/task", 16.0)  # more than there are
    assert collector.read(3.0)["cpu_limit_count"] == 4.0


@both
def test_how_often_the_quota_held_training_back(tmp_path: Path, is_v2: bool) -> None:
    host = Host(tmp_path, is_v2=is_v2)
    host.set("job/task", 1.0, periods=100, throttled=10)
    collector = host.collector()
    assert "cpu_throttled_fraction" not in collector.read(0.0)

    host.set("job/task", 1.0, periods=150, throttled=50)
    assert collector.read(1.0)["cpu_throttled_fraction"] == pytest.approx(0.8)


def test_groups_of_a_container_are_found_below_where_they_are_mounted(tmp_path: Path) -> None:
    host = Host(tmp_path, is_v2=True)
    host.write("self/mountinfo", V2.format(top=host.top).replace(" / ", " /pod ", 1))
    host.write("7/cgroup", "0::/pod/job/task\n")
    host.set("job", 1.5)

    assert host.collector().read(0.0) == {"cpu_limit_count": 1.5}


def test_a_process_is_in_a_group_of_each_tree_where_both_versions_are_mounted(
    tmp_path: Path,
) -> None:
    host = Host(tmp_path, is_v2=False)
    unified = host.top / "unified"
    unified.mkdir()
    host.write("self/mountinfo", V1.format(top=host.top) + V2.format(top=unified))
    host.set("job/task", 0.5)

    assert host.collector().read(0.0) == {"cpu_limit_count": 0.5}


def test_nobody_trains_or_only_those_who_have_ended(tmp_path: Path) -> None:
    host = Host(tmp_path, is_v2=True)

    assert CpuLimitCollector(host.procfs, tuple).read(0.0) == {}
    assert host.collector(8).read(0.0) == {}


def test_a_group_that_is_removed_has_no_quota(tmp_path: Path) -> None:
    host = Host(tmp_path, is_v2=False)
    host.set("job/task", 1.0)
    collector = host.collector()
    collector.read(0.0)
    for file in (host.top / "job/task").iterdir():
        file.write_text("")

    assert collector.read(1.0) == {"cpu_limit_count": 4.0}


def test_without_procfs_it_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="list of mounts"):
        CpuLimitCollector(tmp_path / "absent", lambda: [7]).read(0.0)
