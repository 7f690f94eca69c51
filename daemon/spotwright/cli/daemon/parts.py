"""Everything a daemon is made of, and how it fits together."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from spotwright.adapters.grpc.access.credentials import (
    ServerLimits,
    server_credentials,
    server_options,
)
from spotwright.adapters.grpc.access.guard import CallGuard, LoopbackGuard
from spotwright.adapters.grpc.access.rate_limit import RateLimiter
from spotwright.adapters.grpc.interceptor import CallInterceptor, Guard
from spotwright.adapters.grpc.jobs.job_service import JobService
from spotwright.adapters.grpc.jobs.job_watch import JobWatches
from spotwright.adapters.grpc.messages.planned_run import read_planned_run
from spotwright.adapters.grpc.planning.catalog_service import CatalogService
from spotwright.adapters.grpc.planning.decider import WorkerDecider
from spotwright.adapters.grpc.planning.planner_service import PlannerService
from spotwright.adapters.grpc.planning.workers import QUICK, SEARCH, STEER
from spotwright.adapters.grpc.server import DaemonServer, Endpoint, Servicers
from spotwright.adapters.grpc.telemetry.advice import AgentAdvice
from spotwright.adapters.grpc.telemetry.service import TelemetryService
from spotwright.adapters.metrics.daemon_metrics import DaemonMetrics
from spotwright.adapters.metrics.endpoint import MetricsEndpoint
from spotwright.adapters.metrics.figures import LaneFigures, Sources
from spotwright.adapters.metrics.loop_lag import LoopLag
from spotwright.adapters.processes.pool import Lane, WorkerPool
from spotwright.adapters.store.sql_store import SqlStore
from spotwright.adapters.terraform.job_fleets import JobFleets
from spotwright.adapters.tls.certificate_files import ServerFiles
from spotwright.adapters.webhook.posting import Webhook
from spotwright.cli.daemon.history import HistoryWriting
from spotwright.cli.daemon.housekeeping import Housekeeping
from spotwright.cli.daemon.metric_sources import agent_figures, certificate_days_left, job_counts
from spotwright.cli.rented import open_rented
from spotwright.cli.serve import Served
from spotwright.usecases.control_jobs import JobControl
from spotwright.usecases.keep_house import GoOn, HouseReport, HouseRules, keep_house
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.record_telemetry import TelemetryWriter
from spotwright.usecases.steer_jobs import JobSteering
from spotwright.usecases.steering_ports import Outlets

_WORKER = "spotwright.cli.daemon.planning_worker:make_handler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the life of a daemon is about."""

    server: DaemonServer
    telemetry: TelemetryService
    writer: TelemetryWriter
    watches: JobWatches
    control: JobControl
    housekeeping: Housekeeping
    loop_lag: LoopLag
    metrics_address: str | None


@asynccontextmanager
async def build_parts(asked: Served, store: SqlStore) -> AsyncIterator[Parts]:
    """Put a daemon together around its store; what it started ends with the context."""
    async with AsyncExitStack() as ends:
        pool = WorkerPool(_WORKER, lanes=_lanes(), environment=_environment(asked))
        await pool.start()
        ends.push_async_callback(pool.close)
        writer, watches, loop_lag = TelemetryWriter(store), JobWatches(store), LoopLag()
        planned = PlannedRuns(store, read_planned_run)

        def news_of(job_id: str) -> None:
            watches.changed(job_id)
            control.wake(job_id)

        telemetry = TelemetryService(store, writer, replica=asked.replica, job_changed=news_of)
        decider, outlets = WorkerDecider(pool, clock=_now), _outlets(asked, store, telemetry, ends)
        steering = JobSteering(store, planned, decider, clock=_now, outlets=outlets)
        replica, changed = asked.replica, watches.changed
        control = JobControl(
            store, planned, replica=replica, clock=_now, changed=changed, steering=steering
        )
        await telemetry.start()
        ends.push_async_callback(telemetry.close)
        metrics = DaemonMetrics(
            Sources(
                lanes=lambda: {name: _lane_figures(pool, name) for name in _lanes()},
                ingest=writer.figures,
                session_count=lambda: telemetry.ingest.session_count,
                jobs=lambda: job_counts(store),
                controlled_job_count=lambda: len(control.controlled_jobs),
                certificate_days_left=lambda: certificate_days_left(asked.tls_dir),
                store_bytes=store.size_bytes,
                loop_lag_s=loop_lag.largest_s,
                agents=lambda: agent_figures(store),
            ),
            per_gpu=asked.metrics_per_gpu,
        )
        has_fleets = asked.fleets_dir is not None
        servicers = Servicers(
            catalog=CatalogService(pool),
            planner=PlannerService(pool, store, clock=_now, observe=metrics.observe_plan),
            jobs=JobService(store, planned, watches, has_fleets=has_fleets, created=control.wake),
            telemetry=telemetry,
        )
        interceptor = CallInterceptor(_guard(asked, store), metrics.observe)
        yield Parts(
            server=DaemonServer(_endpoint(asked), servicers, interceptor),
            telemetry=telemetry,
            writer=writer,
            watches=watches,
            control=control,
            housekeeping=Housekeeping(store, _keep_house(asked, store), replica=asked.replica),
            loop_lag=loop_lag,
            metrics_address=_exported(asked, metrics, ends),
        )


def _outlets(
    asked: Served, store: SqlStore, telemetry: TelemetryService, ends: AsyncExitStack
) -> Outlets:
    """Return where decisions about jobs go."""
    loop, webhook, fleets = asyncio.get_running_loop(), None, None
    if asked.webhook_url is not None:
        webhook = Webhook(asked.webhook_url)
        ends.push_async_callback(asyncio.to_thread, webhook.close)
    if asked.fleets_dir is not None:
        fleets = JobFleets(asked.fleets_dir, environment=os.environ, open_rented=open_rented)

    def queued() -> None:
        loop.call_soon_threadsafe(telemetry.ingest.command_waits)

    return Outlets(
        fleets=fleets,
        advice=AgentAdvice(store, queued=queued),
        tell=None if webhook is None else webhook.tell,
    )


def _lanes() -> dict[str, Lane]:
    """Return a process for what is answered at once, and as many as there is room for to search."""
    searching = max(1, (os.cpu_count() or 2) - 1)
    return {
        QUICK: Lane(process_count=1),
        SEARCH: Lane(process_count=searching, niceness=5),
        STEER: Lane(process_count=1),
    }


def _environment(asked: Served) -> dict[str, str]:
    """Return what workers must know: where the catalog is."""
    return {"SPOTWRIGHT_CATALOG": str(asked.catalog_file)} if asked.catalog_file else {}


def _endpoint(asked: Served) -> Endpoint:
    credentials = None
    if asked.tls_dir is not None:
        credentials = server_credentials(ServerFiles(asked.tls_dir, clock=_now))
    options = server_options(ServerLimits())
    return Endpoint(address=str(asked.listen), credentials=credentials, options=options)


def _guard(asked: Served, store: SqlStore) -> Guard:
    limiter = RateLimiter(clock_s=time.monotonic)
    if asked.tls_dir is None:
        return LoopbackGuard(limiter)
    return CallGuard(store, limiter=limiter, clock=_now, clock_s=time.monotonic)


def _exported(asked: Served, metrics: DaemonMetrics, ends: AsyncExitStack) -> str | None:
    """Open the metrics endpoint, and return where it is."""
    if asked.metrics is None:
        return None
    host, port = asked.metrics.host, asked.metrics.port
    endpoint = ends.enter_context(MetricsEndpoint(host, port, metrics.render))
    return str(replace(asked.metrics, port=endpoint.port))


def _keep_house(asked: Served, store: SqlStore) -> Callable[[GoOn], HouseReport]:
    """Return what does one round of retention and history."""
    archive = None
    if asked.history_dir is not None:
        archive = HistoryWriting(asked.store_url, asked.history_dir, clock=time.time)
    rules = HouseRules(batches_s=asked.raw_window_s)
    return lambda go_on: keep_house(
        store, now_unix_s=time.time(), rules=rules, archive=archive, go_on=go_on
    )


def _lane_figures(pool: WorkerPool, lane: str) -> LaneFigures:
    return LaneFigures(
        running_count=pool.running_count(lane), waiting_count=pool.waiting_count(lane)
    )


def _now() -> datetime:
    return datetime.now(UTC)
