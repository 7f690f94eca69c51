"""CPUs that training may use: those that it may run on, and the quotas of its control groups.

    cpu_limit_count        = min(CPUs that it may run on, quota / period of each group above it)
    cpu_throttled_fraction = periods in which its tightest group was held back / all periods

Both versions of control groups are known. A process seldom moves to another group, so that is
looked up now and then; the quotas, by which a host shrinks while it runs, are read every time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spotwright_agent.collectors.kernel_files import KernelFile
from spotwright_agent.readings import CollectorError, HostFigures

_LOOK_AGAIN_S = 10.0
_MOST_BYTES = 65_536  # of the list of mounts


class CpuLimitCollector:
    """What the processes that tell their steps may use; absent while there are none."""

    name = "cpu limit"

    def __init__(self, root: Path, pids: Callable[[], Collection[int]]) -> None:
        """Remember where procfs is, and who knows the processes that train."""
        self._root, self._pids = root, pids
        self._known: frozenset[int] = frozenset()
        self._look_again_s = float("-inf")
        self._cpu_count = 0
        self._lines: list[
            list[_Group]
        ] = []  # of each group with such processes, it and those above
        self._periods: dict[Path, tuple[int, int]] = {}

    def read(self, now_s: float) -> HostFigures:
        """Return the figures; the share of time is absent in the first call, and without quotas."""
        pids = frozenset(self._pids())
        if pids != self._known or now_s >= self._look_again_s:
            self._look(pids)
            self._known, self._look_again_s = pids, now_s + _LOOK_AGAIN_S
        if not self._cpu_count:
            return {}
        tightest = [_tightest(line) for line in self._lines]
        quotas = [found[0] for found in tightest if found is not None]
        limit = float(self._cpu_count)
        if quotas and len(quotas) == len(self._lines):  # else some process has no quota at all
            limit = min(limit, sum(quotas))
        figures: HostFigures = {"cpu_limit_count": limit}
        throttled = self._throttled([found[1] for found in tightest if found is not None])
        if throttled is not None:
            figures["cpu_throttled_fraction"] = throttled
        return figures

    def _look(self, pids: Iterable[int]) -> None:
        try:
            mounts = _mounts(KernelFile(self._root / "self/mountinfo", most_bytes=_MOST_BYTES))
        except OSError as error:
            raise CollectorError(f"the list of mounts cannot be read: {error.strerror}") from error
        cpus: set[int] = set()
        places: set[_Place] = set()
        for pid in pids:
            try:
                cpus |= _allowed(self._root / str(pid) / "status")
                places.add(tuple(_folders(self._root / str(pid) / "cgroup", mounts)))
            except (OSError, ValueError):
                continue  # it has ended
        self._cpu_count = len(cpus)
        self._lines = [
            [group for folder, top in place for group in _groups(folder, top)] for place in places
        ]

    def _throttled(self, groups: Iterable["_Group"]) -> float | None:
        found = []
        before, self._periods = self._periods, {}
        for group in groups:
            try:
                now = group.periods()
            except (OSError, ValueError, KeyError):
                continue
            self._periods[group.folder] = now
            passed, held_back = (
                a - b for a, b in zip(now, before.get(group.folder, now), strict=True)
            )
            if passed > 0:
                found.append(min(max(held_back, 0) / passed, 1.0))
        return max(found, default=None)


class _Mount(NamedTuple):
    root: str  # what of the tree of groups is to be seen at `place`
    place: Path
    is_v2: bool


_Place = tuple[tuple[Path, Path], ...]  # of a process: its group and the top, in each tree


class _Group:
    """One control group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_v2 = (folder / "cpu.max").exists()
        names = ("cpu.max",) if self._is_v2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        self._files = [KernelFile(folder / name, most_bytes=64) for name in names]
        self._stat = KernelFile(folder / "cpu.stat", most_bytes=1024)

    def quota(self) -> float | None:
        """Return how many CPUs it may use at once; None: as many as there are."""
        told, period = b" ".join(file.read() for file in self._files).split()
        if told == b"max" or int(told) < 0:
            return None
        return int(told) / int(period)

    def periods(self) -> tuple[int, int]:
        """Return the periods in which it ran, and those of them in which it was held back."""
        words = self._stat.read().split()
        told = dict(zip(words[::2], words[1::2], strict=False))
        return int(told[b"nr_periods"]), int(told[b"nr_throttled"])


def _tightest(line: Iterable[_Group]) -> tuple[float, _Group] | None:
    found = []
    for group in line:
        try:
            quota = group.quota()
        except (OSError, ValueError, ZeroDivisionError):
            continue  # the group was removed
        if quota is not None:
            found.append((quota, group))
    return min(found, key=lambda each: each[0], default=None)


def _mounts(file: KernelFile) -> list[_Mount]:
    """Return where the trees of groups that limit CPUs are mounted."""
    found = []
    for line in file.read().decode("utf-8", "replace").splitlines():
        about, _, source = line.partition(" - ")
        words, told = about.split(), source.split()
        if len(words) < 5 or len(told) < 3 or told[0] not in ("cgroup", "cgroup2"):
            continue
        is_v2 = told[0] == "cgroup2"
        if is_v2 or "cpu" in told[2].split(","):
            found.append(_Mount(words[3], Path(words[4]), is_v2))
    file.close()
    return found


def _allowed(status: Path) -> set[int]:
    """Return the CPUs that a process may run on."""
    listed = status.read_text("ascii", "replace").partition("\nCpus_allowed_list:")[2].split()[0]
    cpus: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def _folders(cgroup: Path, mounts: Iterable[_Mount]) -> Iterator[tuple[Path, Path]]:
    """Yield the folder of the group that limits a process's CPUs, and the top of its tree."""
    for line in cgroup.read_text("utf-8", "replace").splitlines():
        number, controllers, path = line.split(":", 2)
        is_v2 = number == "0"
        if not is_v2 and "cpu" not in controllers.split(","):
            continue
        for mount in mounts:
            root = mount.root.rstrip("/")
            if mount.is_v2 is is_v2 and f"{path}/".startswith(f"{root}/"):
                yield mount.place / path[len(root) :].lstrip("/"), mount.place


def _groups(folder: Path, top: Path) -> Iterator[_Group]:
    """Yield a group and those above it, as far as they can limit CPUs."""
    for each in (folder, *folder.parents):
        if (each / "cpu.max").exists() or (each / "cpu.cfs_quota_us").exists():
            yield _Group(each)
        if each == top:
            return
