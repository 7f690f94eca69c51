"""Who reports steps: which processes to signal and which sockets to answer.

Only the kernel is believed. A process is held by a pidfd, so that one that is gone is never
mistaken for another that has its number now. Where there are too many, the user with the most of
them loses his oldest, so that nobody can crowd out the others.
"""

import os
import select
import signal
import threading
from contextlib import suppress
from typing import NamedTuple

MAX_SENDERS = 256
SILENT_S = 3_600.0  # a process that said nothing for so long is not signalled
Address = bytes  # an abstract one: a path could have become anything by the time of an answer


class Credentials(NamedTuple):
    """Who sent a datagram, by the kernel's word."""

    pid: int  # 0: a process that this one cannot see
    uid: int


class _Sender:
    __slots__ = ("pidfd", "seen_s")

    def __init__(self, pidfd: int, seen_s: float) -> None:
        self.pidfd, self.seen_s = pidfd, seen_s


_Key = tuple[int, Address | None]


class StepSenders:
    """The processes that sent something readable, newest last, by user. Called from any thread."""

    def __init__(self) -> None:
        self._by_uid: dict[int, dict[_Key, _Sender]] = {}
        self._lock = threading.Lock()

    def see(self, credentials: Credentials, address: Address | None, *, now_s: float) -> None:
        """Remember a sender."""
        key = (credentials.pid, address)
        with self._lock:
            own = self._by_uid.setdefault(credentials.uid, {})
            sender = own.pop(key, None)
            if sender is None:
                self._make_room()
                # Made anew: room may have been made by removing this user's last one.
                own = self._by_uid.setdefault(credentials.uid, own)
                sender = _Sender(_open_pidfd(credentials.pid), now_s)
            sender.seen_s = now_s
            own[key] = sender

    def pids(self, *, now_s: float) -> frozenset[int]:
        """Return the processes that live and have not been silent for long."""
        with self._lock:
            return frozenset(self._living(now_s))

    def signal(self, number: int, *, now_s: float) -> dict[int, str]:
        """Signal these processes; return by process why that failed, empty where it did not."""
        with self._lock:
            return {pid: _signal(pidfd, number) for pid, pidfd in self._living(now_s).items()}

    def addresses(self) -> list[Address]:
        """Return the sockets that can be answered."""
        with self._lock:
            keys = [key for own in self._by_uid.values() for key in own]
            return list(dict.fromkeys(address for _, address in keys if address))

    def forget(self, address: Address) -> None:
        """Leave out a socket that is gone, and its process unless that has another."""
        with self._lock:
            for uid, own in list(self._by_uid.items()):
                for key in [key for key in own if key[1] == address]:
                    self._drop(uid, key)

    def close(self) -> None:
        """Forget everybody."""
        with self._lock:
            for uid, own in list(self._by_uid.items()):
                for key in list(own):
                    self._drop(uid, key)

    def _living(self, now_s: float) -> dict[int, int]:
        """Return a pidfd of each process."""
        self._forget_ended()
        return {
            pid: sender.pidfd
            for own in self._by_uid.values()
            for (pid, _), sender in own.items()
            if sender.pidfd >= 0 and now_s - sender.seen_s <= SILENT_S
        }

    def _make_room(self) -> None:
        if sum(map(len, self._by_uid.values())) < MAX_SENDERS:
            return
        self._forget_ended()
        while sum(map(len, self._by_uid.values())) >= MAX_SENDERS:
            uid = max(self._by_uid, key=lambda uid: len(self._by_uid[uid]))
            self._drop(uid, next(iter(self._by_uid[uid])))

    def _forget_ended(self) -> None:
        poll = select.poll()
        for own in self._by_uid.values():
            for sender in own.values():
                if sender.pidfd >= 0:
                    poll.register(sender.pidfd, select.POLLIN)
        ended = {pidfd for pidfd, _ in poll.poll(0)}
        for uid, own in list(self._by_uid.items()):
            for key in [key for key, sender in own.items() if sender.pidfd in ended]:
                self._drop(uid, key)

    def _drop(self, uid: int, key: _Key) -> None:
        sender = self._by_uid[uid].pop(key)
        if sender.pidfd >= 0:
            with suppress(OSError):
                os.close(sender.pidfd)
        if not self._by_uid[uid]:
            del self._by_uid[uid]


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid) if pid > 0 else -1
    except OSError:
        return -1  # gone already, or no room for another file


def _signal(pidfd: int, number: int) -> str:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except OSError as error:
        return error.strerror or str(error)
    return ""
