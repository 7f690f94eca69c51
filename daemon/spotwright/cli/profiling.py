"""Run a profile for a user of a terminal, tell it, and write the job file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spotwright.adapters.jobfile.write import job_text
from spotwright.cli.profile_flags import ProfileFlags
from spotwright.cli.profile_view import print_instances, print_profile, profile_json
from spotwright.cli.sources import OpenedJob, open_catalog, open_job
from spotwright.cli.terminal import note, print_json, write_text
from spotwright.domain.errors import BadInputError
from spotwright.domain.hardware import Cloud, Gpu
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import (
    AllreduceTuning,
    FixedBatch,
    GlobalBatch,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.profiler.join import join
from spotwright.profiler.profile import (
    PHASES,
    Profile,
    ProfileOptions,
    Report,
    profile_training,
    usual_batches,
)
from spotwright.profiler.workload import kept_notes, profiled_job, profiled_workload
from spotwright.usecases.estimate_stalls import InstanceReport, estimate_stalls
from spotwright.usecases.ports import OfferSource


def profile_model(flags: ProfileFlags, *, catalog_file: Path | None) -> None:
    """Profile, print, and write what was asked for."""
    base = open_job(flags.job, catalog_file=catalog_file, model=flags.model) if flags.job else None
    options = _options(flags, base.job if base else None)
    strategy = flags.strategy or (base.job.workload.strategy if base else Strategy.ALLREDUCE)
    if strategy is Strategy.SERVERLESS:
        raise BadInputError(
            "strategy serverless needs the speed of functions by their memory, which no profile of "
            "one host tells; choose another --strategy, or calibrate"
        )
    source = base.catalog if base else open_catalog(Cloud.AWS, file=catalog_file)
    names = flags.instance_names()
    for name in names:  # before a minute of measuring
        source.instance_type(name)
    with _progress(options.seconds) as report:
        measured = profile_training(options, report=report)
    jobs = _jobs(measured, base, flags, strategy=strategy, source=source)
    job = next(iter(jobs.values())) if base is None else jobs[_model_of(base)]
    told = (*measured.notes, *(kept_notes(base.job.workload) if base else ()))
    instances = _estimated(measured, job, names, source)
    if flags.out:
        write_text(flags.out, job_text(jobs, comment=_comment(measured, base)))
    if flags.as_json:
        print_json(profile_json(measured, instances, notes=told, output=flags.out))
        return
    print_profile(measured, notes=told)
    print_instances(instances)
    note(_next(flags))


def join_exchange(flags: ProfileFlags, address: str) -> None:
    """Exchange gradients with the host that listens at an address."""
    options = _options(replace(flags, listen=None), None)
    note(f"joining {address} ...")
    join(options, address)
    note("done; the figures are on the host that listens")


def _options(flags: ProfileFlags, base: JobSpec | None) -> ProfileOptions:
    batch = flags.job_batch(base)
    return ProfileOptions(
        target=flags.target,
        batch=batch,
        batches=flags.measured_batches() or usual_batches(batch),
        data=flags.data,
        device=flags.device,
        seconds=flags.seconds,
        loader_processes=flags.loader_processes,
        with_exchange=flags.exchange,
        listen=flags.listen,
    )


def _jobs(
    measured: Profile,
    base: OpenedJob | None,
    flags: ProfileFlags,
    *,
    strategy: Strategy,
    source: OfferSource,
) -> dict[str, JobSpec]:
    """Return the jobs of the file to write: of several workloads, one is replaced."""
    gpus = _gpus(source)
    if base is None:
        job = profiled_job(measured, strategy=strategy, gpus=gpus)
        return {job.name: job}
    keeps_batch = flags.batch is None and flags.batches is None
    workload = profiled_workload(
        measured, _of_strategy(base.job.workload, strategy), gpus=gpus, keep_batch=keeps_batch
    )
    jobs = dict(base.loaded.specs)
    jobs[_model_of(base)] = replace(base.job, workload=workload)
    return jobs


def _of_strategy(workload: Workload, strategy: Strategy) -> Workload:
    """Return a workload with the sections that its strategy uses, and no other."""
    if workload.strategy is strategy:
        return workload
    serving = workload.parameter_serving or ParameterServing()
    tuning = workload.allreduce or AllreduceTuning()
    together = strategy is Strategy.ALLREDUCE
    return replace(
        workload,
        strategy=strategy,
        serverless=None,
        parameter_serving=None if together else serving,
        allreduce=tuning if together else None,
    )


def _model_of(base: OpenedJob) -> str:
    return base.model or next(iter(base.loaded.specs))


def _gpus(source: OfferSource) -> list[Gpu]:
    names = {kind.gpu_name for kind in source.instance_types() if kind.gpu_name}
    return [source.gpu(name) for name in sorted(names)]


def _estimated(
    measured: Profile, job: JobSpec, names: tuple[str, ...], source: OfferSource
) -> list[InstanceReport]:
    per_sample, batch = measured.sizes.input_bytes_per_sample, measured.options.batch
    if isinstance(job.workload.batch, GlobalBatch):  # one fleet's share says nothing of another's
        job = replace(job, workload=replace(job.workload, batch=FixedBatch(per_gpu_count=batch)))
    return estimate_stalls(job, names, source, input_bytes_per_sample=per_sample)


def _comment(measured: Profile, base: OpenedJob | None) -> str:
    options = measured.options
    told = (
        f"Workload by `spotwright profile {options.target}` on {measured.device_name}, batches "
        f"{', '.join(map(str, options.batches))}."
    )
    return told if base else f"{told}\nGoal and limits are placeholders: set your own."


def _next(flags: ProfileFlags) -> str:
    if flags.out:
        return f"written to {flags.out}; next: spotwright plan {flags.out}"
    return "add --out JOB.yaml to write this as a job file that `spotwright plan` takes"


@contextmanager
def _progress(seconds: float) -> Iterator[Report]:
    """Show a bar on stderr while it is a terminal; it is gone at the end."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("profiling", total=seconds)

        def report(phase: str, done: float) -> None:
            start, share = PHASES[phase]
            bar.update(task, description=phase, completed=seconds * (start + share * done))

        yield report
