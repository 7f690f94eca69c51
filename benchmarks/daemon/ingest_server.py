"""A daemon with telemetry alone: `python -m benchmarks.daemon.ingest_server --store URL`.

Prints one JSON line when it serves, and one with its figures when SIGTERM ends it.
"""

import argparse
import asyncio
import gc
import json
import resource
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import grpc

from benchmarks.daemon.load import raise_file_limit
from spotwright.adapters.grpc.guard import CallGuard
from spotwright.adapters.grpc.interceptor import CallInterceptor
from spotwright.adapters.grpc.rate_limit import RateLimiter
from spotwright.adapters.grpc.telemetry_service import TelemetryService
from spotwright.adapters.store.sql_store import open_store
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.v1.telemetry_pb2_grpc import add_TelemetryServiceServicer_to_server

_TICK_S = 0.01


async def _serve(asked: argparse.Namespace) -> None:
    store = open_store(asked.store)
    writer = TelemetryWriter(store)
    service = TelemetryService(store, writer, replica="benchmark")
    guard = CallGuard(
        store,
        limiter=RateLimiter(clock_s=time.monotonic),
        clock=lambda: datetime.now(UTC),
        clock_s=time.monotonic,
    )
    server = grpc.aio.server(
        interceptors=(CallInterceptor(guard, lambda *_: None),),
        options=(("grpc.so_reuseport", 0),),
        maximum_concurrent_rpcs=20_000,
    )
    add_TelemetryServiceServicer_to_server(service, server)
    port = server.add_secure_port(f"127.0.0.1:{asked.port}", _credentials(asked.tls_dir))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await service.start()
    await server.start()
    gc.collect()
    gc.freeze()  # what start-up made stays, and need not be looked at again
    gc.set_threshold(10_000, 20, 1_000)
    print(json.dumps({"port": port}), flush=True)
    gaps = asyncio.create_task(_gaps_s())
    await stop.wait()
    gaps.cancel()
    [largest_s] = await asyncio.gather(gaps)
    await service.close()
    await server.stop(1)
    print(json.dumps(_figures(writer, largest_s)), flush=True)
    store.close()


def _credentials(tls_dir: Path) -> grpc.ServerCredentials:
    pair = ((tls_dir / "server.key").read_bytes(), (tls_dir / "server.crt").read_bytes())
    return grpc.ssl_server_credentials(
        [pair], (tls_dir / "ca.crt").read_bytes(), require_client_auth=True
    )


async def _gaps_s() -> list[float]:
    """Measure how long the loop did not come round, the ten longest."""
    longest, before_s = [0.0] * 10, time.monotonic()
    try:
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = time.monotonic()
            longest = sorted([*longest, now_s - before_s - _TICK_S])[1:]
            before_s = now_s
    except asyncio.CancelledError:
        return longest


def _figures(writer: TelemetryWriter, gaps_s: list[float]) -> dict[str, object]:
    usage, figures = resource.getrusage(resource.RUSAGE_SELF), writer.figures()
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_mb": usage.ru_maxrss / 1024,
        "loop_gap_s": gaps_s[-1],
        "loop_gaps_s": gaps_s,
        "batches_stored": figures.batches_stored,
        "rows_stored": figures.rows_stored,
        "duplicates": figures.duplicates,
        "commits": figures.commits,
        "commit_mean_s": figures.commit_total_s / max(1, figures.commits),
    }


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--tls-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    raise_file_limit()
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
