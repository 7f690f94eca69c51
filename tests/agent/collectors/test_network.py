"""Interfaces read from a tree made like sysfs."""

import shutil
import socket
from pathlib import Path

import pytest

from spotwright_agent.collectors.network import InterfaceFacts, NetworkCollector, read_interfaces
from spotwright_agent.readings import CollectorError
from tests.outside_tools import require


def interface(root: Path, name: str, *, speed: str | None, device: bool = True) -> None:
    statistics = root / name / "statistics"
    statistics.mkdir(parents=True)
    (statistics / "rx_bytes").write_text("18446744073709551615\n")
    (statistics / "tx_bytes").write_text("7\n")
    if speed is not None:
        (root / name / "speed").write_text(speed)
    if device:
        (root / name / "device").mkdir()


def test_physical_interfaces_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    interface(tmp_path, "ens6", speed="100000\n")
    interface(tmp_path, "ens5", speed="25000\n")

    assert read_interfaces(tmp_path) == [
        InterfaceFacts(name="ens5", speed_mbps=25_000, received_bytes=2**64 - 1, sent_bytes=7),
        InterfaceFacts(name="ens6", speed_mbps=100_000, received_bytes=2**64 - 1, sent_bytes=7),
    ]


def test_loopback_bridges_and_stray_files_are_left_out(tmp_path: Path) -> None:
    interface(tmp_path, "lo", speed=None, device=False)
    interface(tmp_path, "docker0", speed="10000\n", device=False)
    (tmp_path / "bonding_masters").write_text("bond0\n")

    assert read_interfaces(tmp_path) == []


@pytest.mark.parametrize("speed", ["-1\n", "0\n", "", "unknown\n", None])
def test_a_speed_the_driver_does_not_tell_is_unknown_not_zero(
    tmp_path: Path, speed: str | None
) -> None:
    interface(tmp_path, "eth0", speed=speed)

    (found,) = read_interfaces(tmp_path)

    assert found.speed_mbps is None


def test_a_host_without_sysfs_has_no_interfaces_to_tell_of(tmp_path: Path) -> None:
    assert read_interfaces(tmp_path / "absent") == []


@pytest.mark.parametrize("gone", ["statistics/rx_bytes", "statistics/tx_bytes"])
def test_an_interface_that_vanishes_while_it_is_read_is_left_out(tmp_path: Path, gone: str) -> None:
    interface(tmp_path, "ens5", speed="25000\n")
    interface(tmp_path, "ens6", speed="25000\n")
    (tmp_path / "ens5" / gone).unlink()

    assert [found.name for found in read_interfaces(tmp_path)] == ["ens6"]


def test_counters_that_cannot_be_read_for_another_reason_are_an_error(tmp_path: Path) -> None:
    interface(tmp_path, "ens5", speed="25000\n")
    (tmp_path / "ens5/statistics/rx_bytes").unlink()
    (tmp_path / "ens5/statistics/rx_bytes").mkdir()

    with pytest.raises(IsADirectoryError):
        read_interfaces(tmp_path)


def count(root: Path, name: str, *, received: int, sent: int) -> None:
    (root / name / "statistics/rx_bytes").write_text(f"{received}\n")
    (root / name / "statistics/tx_bytes").write_text(f"{sent}\n")


def test_rates_are_the_sum_of_all_physical_interfaces(tmp_path: Path) -> None:
    for name in ("ens5", "ens6"):
        interface(tmp_path, name, speed=None)
        count(tmp_path, name, received=1000, sent=0)
    interface(tmp_path, "docker0", speed=None, device=False)
    collector = NetworkCollector(tmp_path)

    assert collector.read(10.0) == {}
    count(tmp_path, "ens5", received=1000 + 10**6, sent=10**6)
    count(tmp_path, "ens6", received=1000 + 3 * 10**6, sent=0)
    count(tmp_path, "docker0", received=0, sent=0)

    assert collector.read(12.0) == {"network_rx_mbps": 16.0, "network_tx_mbps": 4.0}


def test_interfaces_come_and_go_without_a_jump(tmp_path: Path) -> None:
    interface(tmp_path, "ens5", speed=None)
    count(tmp_path, "ens5", received=0, sent=0)
    collector = NetworkCollector(tmp_path)
    collector.read(0.0)
    interface(tmp_path, "ens6", speed=None)
    count(tmp_path, "ens5", received=10**7, sent=0)
    count(tmp_path, "ens6", received=10**15, sent=10**15)

    assert collector.read(10.0)["network_rx_mbps"] == pytest.approx(8)
    count(tmp_path, "ens6", received=10**15 + 10**7, sent=10**15)
    assert collector.read(20.0)["network_rx_mbps"] == pytest.approx(8)
    shutil.rmtree(tmp_path / "ens5")
    count(tmp_path, "ens6", received=10**15 + 2 * 10**7, sent=10**15)
    assert collector.read(30.0)["network_rx_mbps"] == pytest.approx(8)


def test_a_host_without_the_class_tells_so(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="cannot be listed"):
        NetworkCollector(tmp_path / "absent").read(0.0)


def test_garbage_in_a_counter_hides_only_that_interface(tmp_path: Path) -> None:
    for name in ("ens5", "ens6"):
        interface(tmp_path, name, speed=None)
        count(tmp_path, name, received=0, sent=0)
    (tmp_path / "ens5/statistics/rx_bytes").write_text("garbage\n")
    collector = NetworkCollector(tmp_path)
    collector.read(0.0)
    count(tmp_path, "ens6", received=10**6, sent=0)

    assert collector.read(1.0)["network_rx_mbps"] == pytest.approx(8)


def test_counters_of_the_kernel_are_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "real/device").mkdir(parents=True)
    (tmp_path / "real/statistics").symlink_to("/sys/class/net/lo/statistics")
    require(Path("/sys/class/net/lo/statistics").is_dir(), "this host has no /sys/class/net")
    collector = NetworkCollector(tmp_path)
    collector.read(0.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        for _ in range(1000):
            udp.sendto(bytes(1000), udp.getsockname())

    assert collector.read(1.0)["network_tx_mbps"] >= 8.0  # 10^6 bytes and their headers
