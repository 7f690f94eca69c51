"""The life of a daemon: started in order, ended in reverse, on SIGTERM or Ctrl-C.

The end: NOT_SERVING; agents are told to come back later, and what they sent is committed and
acknowledged; jobs and housekeeping are given back, a job whose fleet is being applied when that has
ended; no new calls, those that run get 5 s; planning processes end; the store is closed last.
"""

import asyncio
import fcntl
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from spotwright.adapters.grpc.server import TELEMETRY
from spotwright.adapters.store.sql_store import open_store
from spotwright.cli.daemon.background import background, tell_busy, tell_health
from spotwright.cli.daemon.parts import Parts, build_parts
from spotwright.cli.daemon.service_notify import ServiceNotify
from spotwright.cli.serve import Served
from spotwright.cli.terminal import print_json
from spotwright.domain.errors import OutsideWorldError

_log = logging.getLogger(__name__)

_CALLS_GRACE_S = 5.0
_SWITCH_S = 0.0005  # 5 ms is usual: predictions would wait that long for the thread that commits


def run_daemon(asked: Served) -> None:
    """Serve until told to stop."""
    os.umask(0o077)  # plans, and hashes of tokens, are nobody else's to read
    _allow_many_connections()
    with _only_daemon_of(asked.store_url):
        asyncio.run(_serve(asked))


async def _serve(asked: Served) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    notify = ServiceNotify.from_environment()
    async with AsyncExitStack() as ends:
        store = await asyncio.to_thread(open_store, asked.store_url)
        ends.push_async_callback(asyncio.to_thread, store.close)
        parts = await ends.enter_async_context(build_parts(asked, store))
        port = await parts.server.start()
        ends.push_async_callback(parts.server.stop, grace_s=_CALLS_GRACE_S)
        await ends.enter_async_context(_beside_the_calls(parts, notify, stopping))
        await parts.server.set_serving(True)
        _favour_the_loop()
        _tell_ready(asked, parts, notify, port)
        await stopping.wait()
        _log.info("stopping")
        notify.stopping()
        await parts.server.set_serving(False)
        await parts.telemetry.close()
        parts.watches.close()


def _allow_many_connections() -> None:
    """Take as many open files as the host gives: each agent is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _favour_the_loop() -> None:
    """Let it wait for neither other threads nor full collections, which stop it for 0.1 s."""
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 1_000)


def _tell_ready(asked: Served, parts: Parts, notify: ServiceNotify, port: int) -> None:
    address = str(replace(asked.listen, port=port))
    metrics = parts.metrics_address
    facts = {"listen": address, "metrics": metrics, "replica": asked.replica, "pid": os.getpid()}
    _log.info("serving", extra=facts | {"tls": asked.tls_dir is not None})
    notify.ready(f"serving on {address}")
    if asked.as_json:
        print_json(facts, in_one_line=True)


def _beside_the_calls(
    parts: Parts, notify: ServiceNotify, stopping: asyncio.Event
) -> AbstractAsyncContextManager[None]:
    busy = tell_busy(lambda: parts.control.is_carrying_out, notify.needs_time, stopping=stopping)
    endless = [parts.loop_lag.watch(), _tell_health(parts, stopping), busy]
    if notify.watchdog_s is not None:
        endless.append(_feed_watchdog(notify, notify.watchdog_s / 3))
    orderly = [parts.control.run(stopping), parts.housekeeping.run(stopping)]
    return background(stopping, orderly=orderly, endless=endless)


async def _tell_health(parts: Parts, stopping: asyncio.Event) -> None:
    """Tell agents and load balancers when telemetry cannot be stored."""
    await tell_health(
        lambda: parts.writer.figures().store_failing,
        partial(parts.server.set_serving, only=TELEMETRY),
        stopping=stopping,
    )


async def _feed_watchdog(notify: ServiceNotify, period_s: float) -> None:
    """Feed it from the event loop: a loop that hangs is to be restarted."""
    while True:
        notify.alive()
        await asyncio.sleep(period_s)


@contextmanager
def _only_daemon_of(store_url: str) -> Iterator[None]:
    """Keep other daemons away from a SQLite file: its sessions are known to one process only."""
    if not store_url.startswith("sqlite:///") or store_url == "sqlite:///":
        yield
        return
    path = Path(store_url.removeprefix("sqlite:///") + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise OutsideWorldError(f"cannot write {path}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutsideWorldError(
                f"another daemon uses {store_url}; stop it, or give several daemons one "
                "postgresql:// store"
            ) from None
        yield
