"""Interfaces read from a tree made like sysfs."""

from pathlib import Path

import pytest

from spotwright_agent.collectors.network import InterfaceFacts, read_interfaces


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
