"""What the kernel tells of real connections, between two addresses of this host."""

import socket
import threading
import time

from spotwright_agent.collectors.sent_rate import SentRateCollector

SIZE = 256_000_000


def connected(to: str) -> tuple[socket.socket, socket.socket]:
    with socket.create_server((to, 0)) as listener:
        sender = socket.create_connection(listener.getsockname(), source_address=("127.0.0.1", 0))
        receiver, _ = listener.accept()
    return sender, receiver


def drain(receiver: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(receiver.recv(1 << 20))


def send(to: str, *, size: int = SIZE) -> tuple[float | None, float]:
    """Send so much; return what was reached by the kernel's word, and by the clock, in Mbit/s."""
    sender, receiver = connected(to)
    with sender, receiver:
        collector = SentRateCollector()
        collector.read(0.0)
        reading = threading.Thread(target=drain, args=(receiver, size))
        reading.start()
        began_s = time.monotonic()
        sender.sendall(bytes(size))
        reading.join()
        took_s = time.monotonic() - began_s
        return collector.read(1.0).get("network_reached_mbps"), size * 8e-6 / took_s


def test_the_rate_is_that_of_the_time_in_which_there_was_something_to_send() -> None:
    reached, by_clock = send("127.0.0.2")

    assert reached is not None
    assert reached >= 0.9 * by_clock


def test_pauses_between_bursts_do_not_count() -> None:
    sender, receiver = connected("127.0.0.2")
    with sender, receiver:
        collector = SentRateCollector()
        collector.read(0.0)
        reading = threading.Thread(target=drain, args=(receiver, 5 * SIZE // 8))
        reading.start()
        began_s = time.monotonic()
        for _ in range(5):
            sender.sendall(bytes(SIZE // 8))
            time.sleep(0.3)
        reading.join()
        by_clock = 5 * SIZE * 1e-6 / (time.monotonic() - began_s)

        assert collector.read(1.0)["network_reached_mbps"] > by_clock


def test_what_stays_on_the_host_or_is_little_is_not_told() -> None:
    assert send("127.0.0.1", size=SIZE // 8)[0] is None
    assert send("127.0.0.2", size=100_000)[0] is None
