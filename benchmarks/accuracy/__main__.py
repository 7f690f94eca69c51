"""Run every accuracy comparison: `python -m benchmarks.accuracy [--data DIR] [--plots DIR]`."""

import argparse
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.accuracy import allreduce, async_ps
from benchmarks.accuracy.allreduce_rivals import SEED
from benchmarks.accuracy.allreduce_runs import GRADIENT_BYTES, chosen, read_runs
from benchmarks.accuracy.async_ps import ASSUMED_SHARES, DEALT_SHARES, AsyncResult
from benchmarks.accuracy.contention_rules import CONSIDERED
from benchmarks.accuracy.fitted import fitted_values
from benchmarks.accuracy.intervals import interval_rows
from benchmarks.accuracy.noise_floor import hindsight_errors, same_fleet_error
from benchmarks.accuracy.plots import draw_all
from benchmarks.accuracy.product import Product
from benchmarks.accuracy.small_laws import small_law_rows
from benchmarks.accuracy.spotdnn import spotdnn_rows
from benchmarks.accuracy.table import Row, print_rows


def main() -> None:
    """Print one table per topic, then where and how it was run."""
    options = _options()
    measured: Path = options.data / "measured"
    if not measured.is_dir():
        print(f"skipped: no measured runs in {measured}; name their folder with --data")
        return
    started_s, product = time.perf_counter(), Product()
    one_server, ps_rows = _parameter_servers(product, measured)
    left_out, far, ring_rows = _allreduce(product, measured)
    laws = small_law_rows(product, measured)
    _print_topic("Small laws", laws)
    _print_topic("spotDNN as published", spotdnn_rows(product))
    if options.plots is not None:
        shown = [row for row in [*ps_rows, *ring_rows, *laws] if "worst" not in row.what]
        paths = draw_all(
            options.plots, one_server=one_server, left_out=left_out, far=far, rows=shown
        )
        print("\n" + "\n".join(f"drawn: {path}" for path in paths))
    _print_machine(time.perf_counter() - started_s)


def _parameter_servers(product: Product, measured: Path) -> tuple[AsyncResult, list[Row]]:
    clusters = async_ps.read_clusters(measured / "cmdare_cluster_speed.csv")
    single = async_ps.compare(product, clusters, servers=1, shares=ASSUMED_SHARES)
    assumed = async_ps.compare(product, clusters, servers=2, shares=ASSUMED_SHARES)
    dealt = async_ps.compare(product, clusters, servers=2, shares=DEALT_SHARES)
    rows = async_ps.one_server_rows(single)
    rows += async_ps.two_server_rows(assumed, "shard assumed")
    rows += async_ps.two_server_rows(dealt, "shard known")
    _print_topic("Asynchronous parameter servers: cluster speed from the one-worker row", rows)
    inside = np.concatenate([single.inside, assumed.inside])
    print(f"  uncalibrated 90 % interval: covers {100 * inside.mean():.0f} % of {len(inside)} rows")
    errors = np.abs(single.errors("ours"))
    print(
        f"  1 PS, standard error of the mean: {errors.std(ddof=1) / len(errors) ** 0.5:.2f} points"
    )
    other = async_ps.read_other_runs(measured / "cmdare_single_gpu_base.csv")
    swapped = async_ps.with_other_lone_speed(clusters, other)
    moved = async_ps.compare(product, swapped, servers=1, shares=ASSUMED_SHARES)
    print(f"  1 PS, from another run of each lone worker: {_by_setting('ours', [moved])} %")
    varied = async_ps.with_other_variation(clusters, other)
    again = [async_ps.compare(product, varied, servers=n, shares=DEALT_SHARES) for n in (1, 2)]
    _print_rules([single, dealt], again)
    return single, rows


def _allreduce(
    product: Product, measured: Path
) -> tuple[dict[str, allreduce.AllreduceResult], allreduce.AllreduceResult, list[Row]]:
    runs = read_runs(measured / "pollux_aws_g4dn12xl_steptime.csv")
    left_out = {
        model: allreduce.left_out_placements(product, chosen(runs, model=model, table="placements"))
        for model in GRADIENT_BYTES
    }
    far = allreduce.extrapolation(product, runs)
    rows = [*allreduce.left_out_rows(left_out), allreduce.extrapolation_row(far)]
    _print_topic("All-reduce on g4dn.12xlarge: step time", rows)
    equals = (f"{model} {same_fleet_error(r.runs):.2f}" for model, r in left_out.items())
    print(f"  a run predicted by the median of its equals in other node orders: {_list(equals)} %")
    hindsight = (f"{name} {e:.2f}" for name, e in hindsight_errors(product, far.runs).items())
    print(f"  6-16 nodes, fitted on the test rows themselves: {_list(hindsight)} %")
    for model, result in left_out.items():
        values = (f"{k} {v:.3g}" for k, v in fitted_values(product, result.runs).items())
        print(f"  {model}, fitted on all placements: {_list(values)}")
    _print_topic("90 % intervals on rows not seen", interval_rows(left_out, far))
    return left_out, far, rows


def _print_topic(title: str, rows: Sequence[Row]) -> None:
    """Print a table, and the notes of its rows below."""
    print(f"\n{title}")
    print_rows(replace(row, note="") for row in rows)
    for row in rows:
        if row.note:
            print(f"  {row.what}: {row.note}")


def _print_rules(results: Sequence[AsyncResult], again: Sequence[AsyncResult]) -> None:
    """Print all contention rules; for those with a variance v, with v of another run too."""
    print("\nContention rules, mean (worst) error in %: K80 1 PS, P100 1 PS, P100 2 PS shard known")
    for rule in results[0].speeds:
        print(f"{rule:<36}{_by_setting(rule, results)}")
        if rule in CONSIDERED:
            print(f"{'  v of another run of the same worker':<36}{_by_setting(rule, again)}")


def _by_setting(rule: str, results: Sequence[AsyncResult]) -> str:
    cells = []
    for result in results:
        gpus = np.array([cluster.gpu for cluster in result.clusters])
        for gpu in sorted(set(gpus)):
            errors = np.abs(result.errors(rule))[gpus == gpu]
            cells.append(f"{errors.mean():6.2f} ({errors.max():5.1f})")
    return "  ".join(cells)


def _print_machine(seconds: float) -> None:
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, Python "
        f"{platform.python_version()}, {platform.platform()}, seed {SEED}, {seconds:.0f} s"
    )


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--plots", type=Path, default=None, help="folder for the pictures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
