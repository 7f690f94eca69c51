"""Everything that can go wrong, on one screen.

SpotwrightError
  BadInputError                 the user gave something that cannot be used: exit 2
    JobFileError                  file, line and what to change
    FleetExpressionError          points at the column
    UnitError                     a quantity that does not parse
    UnknownNameError              no such GPU, type, zone or region; names the nearest
    PinnedPoolError               a pinned pool that the other limits forbid
    CatalogFileError              truncated, foreign or newer than this program
    MeasurementsError             a measured row that cannot be used
    CannotFitError                rows that do not determine the law asked for
    MissingFactError              a prediction needs a figure nobody gave
    MemoryDoesNotFitError         the batch runs out of GPU memory
    UnreachableTargetError        the loss law never gets there
    OutsideFittedRangeError       a fitted law asked beyond its data
    NotFoundError                 no such plan, job or agent
    JobEndedError                 a job that has ended cannot change any more
    HostMemoryError               a model needs more memory than its host has
    CheckpointError               truncated, foreign or of another model
    BatchError                    a batch that cannot be trained on
  NoFeasibleFleetError          no fleet meets the goal: exit 3
  SolverGaveUpError             the search ended without a fleet and without a proof: exit 1
  OutsideWorldError             AWS or a file system said no: exit 1
    CredentialsError              AWS does not know who asks, or does not let them
    StoreUnavailableError         the store cannot be reached or cannot write now
    DaemonUnavailableError        no daemon answers there
    TerraformError                Terraform is absent, too old, or ended with an error
      TerraformRefusedError         it did nothing at all: a stale plan, a state that is locked
      TerraformInterruptedError     it was asked to stop
  BusyError                     too much is waiting already; says when to come back: exit 1
  WorkerDiedError               the process that worked on the answer is gone: exit 1
  NotAllowedError               the daemon does not know the caller, or does not let it: exit 1
  DeclinedError                 the user was asked and said no: exit 1
  TrainingError                 training cannot go on: exit 1
    PeerRefusedError              a peer with another model, version, certificate or name
    LossNotFiniteError            a worker's loss is NaN or infinite
    ServerLostError               a parameter server stayed away for too long
    TrainingOverError             a worker that came after the end
  MissingExtraError             an optional dependency is not installed: exit 1
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spotwright.domain.plan import SmallestChange

_FEW = 40  # names that can be listed in one message


class SpotwrightError(Exception):
    """Base of every error Spotwright raises on purpose."""

    reason = "INTERNAL"


class BadInputError(SpotwrightError):
    """What the user gave cannot be used as it stands."""

    reason = "BAD_INPUT"


class JobFileError(BadInputError):
    """A job file is unreadable, malformed or asks for something impossible."""

    reason = "JOB_FILE"

    def __init__(self, problem: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path, self.line, self.problem = path, line, problem


class FleetExpressionError(BadInputError):
    """A fleet written by hand does not follow `[ps=]TYPE[:GPUS][*COUNT][@ZONE][/MARKET]`."""

    reason = "FLEET_EXPRESSION"

    def __init__(self, problem: str, *, text: str, column: int) -> None:
        one_line = "".join(" " if letter.isspace() else letter for letter in text)
        pointer = " " * (column - 1) + "^"
        super().__init__(f"column {column}: {problem}\n  {one_line}\n  {pointer}")
        self.problem, self.text, self.column = problem, text, column


class UnitError(BadInputError):
    """A quantity has no number, an unknown unit or a value out of range."""

    reason = "UNIT"

    def __init__(self, text: object, *, expected: str) -> None:
        super().__init__(f"cannot read {text!r} as {expected}")
        self.text, self.expected = text, expected


class UnknownNameError(BadInputError):
    """Nothing of that kind has that name."""

    reason = "UNKNOWN_NAME"

    def __init__(self, kind: str, name: str, *, known: Iterable[str]) -> None:
        names, name = sorted(known), str(name)  # an enum member would print as one
        self.kind, self.name, self.nearest = kind, name, nearest_name(name, names)
        if self.nearest:
            hint = f"; did you mean {self.nearest!r}?"
        else:
            hint = f"; known: {', '.join(names)}" if len(names) <= _FEW else ""
        super().__init__(f"unknown {kind} {name!r}{hint}")


class PinnedPoolError(BadInputError):
    """A pool is pinned that the other limits of the same job forbid."""

    reason = "PINNED_POOL"

    def __init__(self, problem: str, *, pool: str) -> None:
        super().__init__(problem)
        self.problem, self.pool = problem, pool


class CatalogFileError(BadInputError):
    """A catalog snapshot cannot be read by this program."""

    reason = "CATALOG_FILE"

    def __init__(self, problem: str, *, path: str) -> None:
        super().__init__(f"catalog {path}: {problem}")
        self.path, self.problem = path, problem


class MeasurementsError(BadInputError):
    """A measurements file lacks a column or holds a value that cannot have been measured."""

    reason = "MEASUREMENTS"

    def __init__(self, problem: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path, self.line, self.problem = path, line, problem


class CannotFitError(BadInputError):
    """The rows given do not determine the law asked for."""

    reason = "CANNOT_FIT"

    def __init__(self, law: str, problem: str, *, way_out: str) -> None:
        super().__init__(f"cannot fit the {law} law: {problem}; {way_out}")
        self.law, self.problem, self.way_out = law, problem, way_out


class MissingFactError(BadInputError):
    """A prediction needs a figure that neither the job nor the catalog has."""

    reason = "MISSING_FACT"

    def __init__(self, fact: str, *, way_out: str) -> None:
        super().__init__(f"{fact} is not known; {way_out}")
        self.fact, self.way_out = fact, way_out


class MemoryDoesNotFitError(BadInputError):
    """The workload needs more memory than one GPU has."""

    reason = "MEMORY_DOES_NOT_FIT"

    def __init__(self, *, device: str, needed_gib: float, available_gib: float, batch: int) -> None:
        super().__init__(
            f"a batch of {batch} needs {needed_gib:.1f} GiB on {device}, which has "
            f"{available_gib:.1f} GiB; lower the batch, raise the ZeRO stage or name a larger GPU"
        )
        self.device, self.batch = device, batch
        self.needed_gib, self.available_gib = needed_gib, available_gib


class UnreachableTargetError(BadInputError):
    """The loss target lies at or below the floor of the loss law."""

    reason = "UNREACHABLE_TARGET"

    def __init__(self, *, target_loss: float, floor_loss: float) -> None:
        super().__init__(
            f"the loss model never goes below {floor_loss:g}, the target is {target_loss:g}; "
            f"set goal.loss above {floor_loss:g} or refit the convergence law"
        )
        self.target_loss, self.floor_loss = target_loss, floor_loss


class OutsideFittedRangeError(BadInputError):
    """A fitted law was asked about a place where it was never fitted."""

    reason = "OUTSIDE_FITTED_RANGE"

    def __init__(self, quantity: str, *, value: float, low: float, high: float) -> None:
        super().__init__(
            f"{quantity} would be {value:.4g}, but the convergence law was fitted for "
            f"{low:g} to {high:g}; choose another fleet or fit the law on more runs"
        )
        self.quantity, self.value, self.low, self.high = quantity, value, low, high


class NotFoundError(BadInputError):
    """Nothing of that kind is kept under that name."""

    reason = "NOT_FOUND"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name!r}")
        self.kind, self.name = kind, name


class JobEndedError(BadInputError):
    """A job that has ended was asked to change."""

    reason = "JOB_ENDED"

    def __init__(self, job_id: str, *, state: str) -> None:
        super().__init__(f"job {job_id} has ended ({state}); start a new one")
        self.job_id, self.state = job_id, state


class HostMemoryError(BadInputError):
    """A model needs more memory than the host has to give."""

    reason = "HOST_MEMORY"

    def __init__(self, what: str, *, needed_bytes: int, available_bytes: int, way_out: str) -> None:
        super().__init__(
            f"{what} needs {needed_bytes / 2**30:.2f} GiB, and this host has "
            f"{available_bytes / 2**30:.2f} GiB to give; {way_out}"
        )
        self.needed_bytes, self.available_bytes = needed_bytes, available_bytes


class CheckpointError(BadInputError):
    """A checkpoint is truncated, foreign, or of another model."""

    reason = "CHECKPOINT"

    def __init__(self, problem: str, *, place: str) -> None:
        super().__init__(f"checkpoint {place}: {problem}")
        self.problem, self.place = problem, place


class BatchError(BadInputError):
    """A batch is empty, or is not what the model takes."""

    reason = "BATCH"


class NoFeasibleFleetError(SpotwrightError):
    """No fleet that the limits allow meets the goal."""

    reason = "NO_FEASIBLE_FLEET"

    def __init__(
        self,
        *,
        clashes: Sequence[str],
        changes: Sequence["SmallestChange"],
        together: Sequence["SmallestChange"] = (),
        proved: bool = True,
    ) -> None:
        """State which limits clash, and the smallest changes that help.

        Args:
            clashes: a sentence each.
            changes: each helps by itself.
            together: these help all at once.
            proved: False where fleets are in time on average, and none tried is so surely enough.
        """
        way_out = _listed("any one of these helps", changes)
        way_out += _listed("these help together", together)
        found = "no fleet meets the goal" if proved else "no fleet was found that meets the goal"
        super().__init__(f"{found}: {'; '.join(clashes)}{way_out}")
        self.clashes, self.changes, self.together = tuple(clashes), tuple(changes), tuple(together)
        self.proved = proved


def _listed(title: str, changes: Sequence["SmallestChange"]) -> str:
    lines = "".join(f"\n  change {change.text}" for change in changes)
    return f"; {title}:{lines}" if changes else ""


class SolverGaveUpError(SpotwrightError):
    """A solver ended with neither an answer nor a proof that there is none."""

    reason = "SOLVER_GAVE_UP"


class OutsideWorldError(SpotwrightError):
    """Something outside the program failed: AWS, the network, the disk."""

    reason = "OUTSIDE_WORLD"


class CredentialsError(OutsideWorldError):
    """AWS was given no credentials, none that it knows, or none that may do what was asked."""

    reason = "CREDENTIALS"


class StoreUnavailableError(OutsideWorldError):
    """The store cannot be reached, or cannot write now; trying again later may help."""

    reason = "STORE_UNAVAILABLE"


class DaemonUnavailableError(OutsideWorldError):
    """Nobody answers where the daemon was said to be, or it refuses the connection."""

    reason = "DAEMON_UNAVAILABLE"


class TerraformError(OutsideWorldError):
    """Terraform cannot be run, or ended with an error that the message explains."""

    reason = "TERRAFORM"


class TerraformRefusedError(TerraformError):
    """Terraform ended before it changed anything."""

    reason = "TERRAFORM_REFUSED"


class TerraformInterruptedError(TerraformError):
    """Terraform was asked to stop, and did."""

    reason = "TERRAFORM_INTERRUPTED"


class BusyError(SpotwrightError):
    """Too much is waiting already."""

    reason = "BUSY"

    def __init__(self, problem: str, *, retry_after_s: float) -> None:
        super().__init__(f"{problem}; try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class WorkerDiedError(SpotwrightError):
    """The process that worked on an answer died; another one takes its place."""

    reason = "WORKER_DIED"


class NotAllowedError(SpotwrightError):
    """The caller is not known, or may not do this."""

    reason = "NOT_ALLOWED"


class DeclinedError(SpotwrightError):
    """The user was asked, and did not want it."""

    reason = "DECLINED"


class TrainingError(SpotwrightError):
    """Training cannot go on."""

    reason = "TRAINING"


class PeerRefusedError(TrainingError):
    """A peer has another model, protocol version, certificate or name than it must have."""

    reason = "PEER_REFUSED"


class LossNotFiniteError(TrainingError):
    """The loss of a worker is NaN or infinite, and so would be every parameter after it."""

    reason = "LOSS_NOT_FINITE"

    def __init__(self, loss: float, *, worker: str, step: int) -> None:
        super().__init__(
            f"loss is {loss} on worker {worker} at step {step}; lower the learning rate, or look "
            "at that worker's data. Its gradient was not pushed"
        )
        self.loss, self.worker, self.step = loss, worker, step


class ServerLostError(TrainingError):
    """A parameter server did not come back in time."""

    reason = "SERVER_LOST"


class TrainingOverError(TrainingError):
    """A worker came after training had ended."""

    reason = "TRAINING_OVER"


class MissingExtraError(SpotwrightError):
    """An optional dependency of a command is not installed."""

    reason = "MISSING_EXTRA"

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(f"{what} needs the {extra!r} extra: pip install 'spotwright[{extra}]'")
        self.extra = extra


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name a typo most likely meant, if any is close."""
    by_folded = {k.lower(): str(k) for k in known}
    close = get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None
