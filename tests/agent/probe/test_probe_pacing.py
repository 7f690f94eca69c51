"""The parts of a probe that need no network: pacing, the share of a core, addresses."""

import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.probe.address import Address, resolve
from spotwright_agent.probe.cpu_share import CpuWatch, allowed_cores
from spotwright_agent.probe.transfer import Bucket


@given(
    max_mbps=st.floats(1, 400_000),
    duration_s=st.floats(0.2, 10),
    pauses_s=st.lists(st.floats(0, 1), min_size=1, max_size=200),
    greed=st.lists(st.floats(0, 1), min_size=1, max_size=200),
)
def test_no_stretch_of_time_gets_more_than_the_rate_and_a_twentieth_of_the_whole(
    max_mbps: float, duration_s: float, pauses_s: list[float], greed: list[float]
) -> None:
    now_s, taken = 0.0, []
    bucket = Bucket(max_mbps=max_mbps, duration_s=duration_s, now_s=now_s)
    for pause_s, part in zip(pauses_s, greed, strict=False):
        now_s += pause_s
        size_bytes = int(part * bucket.allowed_bytes(now_s))
        bucket.take(size_bytes)
        taken.append((now_s, size_bytes))

    bytes_per_s = max_mbps * 125_000
    for at, (start_s, _) in enumerate(taken):
        most = bytes_per_s * (now_s - start_s + duration_s / 20)
        assert sum(size for _, size in taken[at:]) <= most * (1 + 1e-9) + 1


@given(max_mbps=st.floats(1, 400_000), duration_s=st.floats(0.2, 10))
def test_who_waits_as_told_gets_the_whole_rate(max_mbps: float, duration_s: float) -> None:
    now_s, total = 0.0, 0
    bucket = Bucket(max_mbps=max_mbps, duration_s=duration_s, now_s=now_s)
    for _ in range(300):
        now_s += bucket.wait_s() + 1e-6
        allowed = bucket.allowed_bytes(now_s)
        bucket.take(allowed)
        total += allowed

    assert total == pytest.approx(now_s * max_mbps * 125_000, rel=0.01)


@pytest.mark.parametrize(
    ("own", "quotas", "cores"),
    [
        ("0::/\n", {}, 1.0),
        ("0::/a/b\n", {"a/b": "5000 100000\n"}, 0.05),
        ("0::/a/b\n", {"a/b": "max 100000\n", "a": "50000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b": "20000 100000\n", "a": "50000 100000\n"}, 0.2),
        ("0::/a\n", {"a": "800000 100000\n"}, 1.0),
        ("4:cpu:/x\n0::/a\n", {"a": "10000 100000\n"}, 0.1),
        ("4:cpu:/x\n", {"x": "10000 100000\n"}, 1.0),
        ("0::/a\n", {"a": "garbage"}, 1.0),
        ("0::/a\n", {"a": "5 0\n"}, 1.0),
        ("0::/a\n", {"a": ""}, 1.0),
        ("", {}, 1.0),
    ],
)
def test_the_smallest_quota_above_a_process_is_what_it_may_use(
    tmp_path: Path, own: str, quotas: dict[str, str], cores: float
) -> None:
    own_cgroup = tmp_path / "own"
    own_cgroup.write_text(own)
    for path, text in quotas.items():
        (tmp_path / "cgroup" / path).mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / path / "cpu.max").write_text(text)

    assert allowed_cores(cgroups=tmp_path / "cgroup", own_cgroup=own_cgroup) == cores


def test_without_proc_one_core_is_assumed(tmp_path: Path) -> None:
    assert allowed_cores(cgroups=tmp_path, own_cgroup=tmp_path / "absent") == 1.0


def test_a_process_that_works_uses_more_than_one_that_sleeps() -> None:
    sleeping = CpuWatch()
    time.sleep(0.3)
    slept = sleeping.used_fraction()
    working = CpuWatch()
    end_s = time.thread_time() + 0.3
    while time.thread_time() < end_s:
        pass

    assert slept < working.used_fraction()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.1", 7444),
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("10.1.2.3:0", "10.1.2.3", 0),
        ("::1", "::1", 7444),
        ("[::1]", "::1", 7444),
        ("[2001:db8::7]:9000", "2001:db8::7", 9000),
    ],
)
def test_an_address_is_read_with_its_port(text: str, host: str, port: int) -> None:
    found = resolve(text)

    assert (found.host, found.port) == (host, port)
    assert found.is_loopback == (host in ("127.0.0.1", "::1"))


def test_all_addresses_and_those_of_a_link_are_not_loopback() -> None:
    assert not Address(socket.AF_INET, "0.0.0.0", 1).is_loopback
    assert not Address(socket.AF_INET6, "fe80::1%eth0", 1).is_loopback
