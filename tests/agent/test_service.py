"""What systemd hears of the agent, over a real datagram socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from spotwright_agent.service import ServiceNotify


@pytest.fixture(params=["a file", "an abstract name"])
def manager(request: pytest.FixtureRequest) -> Iterator[tuple[str, socket.socket]]:
    """Listen as systemd does; give the address as it stands in NOTIFY_SOCKET."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        if request.param == "a file":
            address = f"{folder}/notify"
            heard.bind(address)
        else:
            address = f"@spotwright-test-{os.getpid()}"
            heard.bind("\0" + address[1:])
        heard.settimeout(10.0)
        yield address, heard


def test_every_message_reaches_the_service_manager(manager: tuple[str, socket.socket]) -> None:
    address, heard = manager
    service = ServiceNotify.from_environment({"NOTIFY_SOCKET": address})

    assert [service.ready("8 GPUs"), service.alive(), service.alive("away"), service.stopping()]

    told = [heard.recv(4096).decode() for _ in range(4)]
    assert told == [
        "READY=1\nSTATUS=8 GPUs",
        "WATCHDOG=1",
        "WATCHDOG=1\nSTATUS=away",
        "STOPPING=1",
    ]


def test_a_status_cannot_be_taken_for_another_message(manager: tuple[str, socket.socket]) -> None:
    address, heard = manager

    ServiceNotify(address).ready("no driver\nSTOPPING=1")

    assert heard.recv(4096).decode().splitlines() == ["READY=1", "STATUS=no driver STOPPING=1"]


def test_a_service_manager_that_does_not_listen_is_not_waited_for(tmp_path: Path) -> None:
    with TemporaryDirectory() as folder:
        address = f"{folder}/notify"
        assert not ServiceNotify(address).alive()  # absent
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
            full.bind(address)
            sent = [ServiceNotify(address).alive() for _ in range(10_000)]
        assert sent[0]
        assert not sent[-1]  # nobody read: the queue is full, and the call came back


def test_outside_systemd_nothing_is_sent_and_nothing_fails() -> None:
    service = ServiceNotify.from_environment({})

    assert not any([service.ready(""), service.alive(), service.stopping()])
