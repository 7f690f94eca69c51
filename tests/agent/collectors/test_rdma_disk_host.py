"""RDMA devices, disks, CPU and memory read from trees made like sysfs and procfs."""

import shutil
from pathlib import Path

import pytest

from spotwright_agent.collectors.disk import DiskCollector
from spotwright_agent.collectors.host import HostCollector
from spotwright_agent.collectors.rdma import RdmaCollector
from spotwright_agent.readings import CollectorError

MEMINFO = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  400 kB\nBuffers: 1 kB\n"


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def efa(root: Path, device: str, **counters: int) -> None:
    for name, value in counters.items():
        write(root / device / "ports/1/hw_counters" / name, value)


def mlx5(root: Path, *, sent_words: int, received_words: int) -> None:
    write(root / "mlx5_0/ports/1/counters/port_xmit_data", sent_words)
    write(root / "mlx5_0/ports/1/counters/port_rcv_data", received_words)


def test_parts_of_efa_traffic_are_not_counted_twice(tmp_path: Path) -> None:
    zero = {"rdma_read_bytes": 0, "rdma_write_bytes": 0, "send_bytes": 0, "recv_bytes": 0}
    for device in ("rdmap0s31", "rdmap1s31"):
        efa(tmp_path, device, tx_bytes=0, rx_bytes=0, **zero)
    collector = RdmaCollector(tmp_path)
    collector.read(0.0)
    moved = dict.fromkeys(zero, 10**6)
    for device in ("rdmap0s31", "rdmap1s31"):
        efa(tmp_path, device, tx_bytes=2 * 10**6, rx_bytes=10**6, **moved)

    assert collector.read(1.0) == {"rdma_rx_mbps": 16.0, "rdma_tx_mbps": 32.0}


def test_an_efa_device_without_totals_is_the_sum_of_its_operations(tmp_path: Path) -> None:
    sent = ("send_bytes", "rdma_write_bytes", "rdma_read_resp_bytes")
    received = ("recv_bytes", "rdma_read_bytes", "rdma_write_recv_bytes")
    efa(tmp_path, "efa_0", **dict.fromkeys(sent + received, 0))
    collector = RdmaCollector(tmp_path)
    collector.read(0.0)
    efa(tmp_path, "efa_0", **dict.fromkeys(sent, 10**6), **dict.fromkeys(received, 2 * 10**6))

    assert collector.read(1.0) == {"rdma_rx_mbps": 48.0, "rdma_tx_mbps": 24.0}


def test_mlx5_counts_words_of_four_bytes(tmp_path: Path) -> None:
    mlx5(tmp_path, sent_words=10, received_words=20)
    collector = RdmaCollector(tmp_path)
    collector.read(0.0)
    mlx5(tmp_path, sent_words=10 + 250_000, received_words=20 + 500_000)

    assert collector.read(1.0) == {"rdma_rx_mbps": 16.0, "rdma_tx_mbps": 8.0}


def test_a_driver_reset_of_a_device_leaves_one_interval_without_it(tmp_path: Path) -> None:
    efa(tmp_path, "efa_0", tx_bytes=10**13, rx_bytes=10**13)
    collector = RdmaCollector(tmp_path)
    collector.read(0.0)
    efa(tmp_path, "efa_0", tx_bytes=5, rx_bytes=5)

    assert collector.read(1.0) == {}
    efa(tmp_path, "efa_0", tx_bytes=5 + 10**6, rx_bytes=5)
    assert collector.read(2.0) == {"rdma_rx_mbps": 0.0, "rdma_tx_mbps": 8.0}


def test_a_host_without_rdma_has_neither_figures_nor_a_fault(tmp_path: Path) -> None:
    collector = RdmaCollector(tmp_path / "absent")

    assert collector.read(0.0) == collector.read(1.0) == {}


def disk(root: Path, name: str, sectors: int, *, device: bool = True, hidden: int = 0) -> None:
    write(root / name / "stat", f"  10  0  {sectors}  5  0 0 0 0 0 0 0")
    write(root / name / "hidden", hidden)
    if device:
        (root / name / "device").mkdir(exist_ok=True)


def test_only_whole_physical_disks_count(tmp_path: Path) -> None:
    def all_disks(sectors: int) -> None:
        disk(tmp_path, "nvme0n1", sectors)
        disk(tmp_path, "sda", sectors)
        disk(tmp_path, "nvme0c0n1", sectors, hidden=1)
        for name in ("loop0", "ram0", "zram0", "dm-0", "md0"):
            disk(tmp_path, name, sectors, device=False)
        disk(tmp_path / "sda", "sda1", sectors)

    all_disks(0)
    collector = DiskCollector(tmp_path)
    assert collector.read(0.0) == {}
    all_disks(2_000_000)

    assert collector.read(1.0) == {"disk_read_mbps": 2 * 2_000_000 * 512 * 8 / 1e6}


def test_a_disk_that_goes_away_takes_nothing_with_it(tmp_path: Path) -> None:
    disk(tmp_path, "sda", 0)
    disk(tmp_path, "sdb", 10**9)
    collector = DiskCollector(tmp_path)
    collector.read(0.0)
    shutil.rmtree(tmp_path / "sdb")
    disk(tmp_path, "sda", 20_000)

    assert collector.read(10.0)["disk_read_mbps"] == pytest.approx(20_000 * 512 * 8 / 1e7)


def test_a_stat_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    disk(tmp_path, "sda", 0)
    collector = DiskCollector(tmp_path)
    collector.read(0.0)
    (tmp_path / "sda/stat").write_text("1 2")

    assert collector.read(1.0) == {}


def proc(root: Path, ticks: str, meminfo: str = MEMINFO) -> None:
    write(root / "stat", f"cpu  {ticks}\ncpu0 {ticks}\nintr 5")
    write(root / "meminfo", meminfo)


def test_busy_and_stolen_shares_are_those_of_the_ticks_between_reads(tmp_path: Path) -> None:
    proc(tmp_path, "100 0 100 1000 50 0 0 10 77 0")
    collector = HostCollector(tmp_path)
    assert collector.read(0.0) == {"memory_used_bytes": 600 * 1024}
    # 20 user, 10 system, 50 idle, 10 waiting, 10 stolen: 30 of 100 busy
    proc(tmp_path, "120 0 110 1050 60 0 0 20 99 0")

    figures = collector.read(1.0)

    assert figures["cpu_fraction"] == pytest.approx(0.3)
    assert figures["cpu_steal_fraction"] == pytest.approx(0.1)


@pytest.mark.parametrize("ticks", ["100 0 100 1000 50 0 0 10", "90 0 90 900 40 0 0 9"])
def test_ticks_that_stand_or_go_back_have_no_shares(tmp_path: Path, ticks: str) -> None:
    proc(tmp_path, "100 0 100 1000 50 0 0 10")
    collector = HostCollector(tmp_path)
    collector.read(0.0)
    proc(tmp_path, ticks)

    assert collector.read(1.0) == {"memory_used_bytes": 600 * 1024}


@pytest.mark.parametrize(
    ("ticks", "meminfo"),
    [("1 2 3", MEMINFO), ("a b c d e f g h i", MEMINFO), ("1 2 3 4 5 6 7 8", "MemTotal: 1 kB")],
)
def test_a_procfs_that_tells_something_else_is_a_fault(
    tmp_path: Path, ticks: str, meminfo: str
) -> None:
    proc(tmp_path, ticks, meminfo)

    with pytest.raises(CollectorError):
        HostCollector(tmp_path).read(0.0)


def test_a_host_without_procfs_is_a_fault_and_then_read_when_it_comes(tmp_path: Path) -> None:
    collector = HostCollector(tmp_path)
    with pytest.raises(CollectorError, match="No such file"):
        collector.read(0.0)
    proc(tmp_path, "1 2 3 4 5 6 7 8")

    assert collector.read(1.0) == {"memory_used_bytes": 600 * 1024}


def test_this_host_can_be_read() -> None:
    collector = HostCollector()
    collector.read(0.0)
    used = collector.read(1.0)["memory_used_bytes"]
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())

    assert 0 < used < int(told["MemTotal"].split()[0]) * 1024
