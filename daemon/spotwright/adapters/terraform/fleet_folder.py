"""A fleet folder: a Terraform root with the module in it, and what Spotwright keeps there.

main.tf, variables.tf     written once, then the user's
spotwright-module/        a copy of the module, so that the folder needs nothing else
fleet.auto.tfvars.json    what the last plan asks for
.spotwright/              lock and saved plan of the command that runs there, and whether one was
                          cut off: mode 0700
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spotwright.domain.errors import BusyError, OutsideWorldError, TerraformRefusedError

_MODULE = "spotwright-module"
_PARTS = ("*.tf", "*.tftpl", "cloud-init/**/*", "modules/**/*")
_NO_PARTS = {".terraform", ".terraform.lock.hcl", "tests", "examples"}
_RETRY_S = 60.0
_IGNORED = ".terraform/\n*.tfstate\n*.tfstate.*\n.spotwright/\n"


@dataclass(frozen=True, slots=True)
class Work:
    """The files of one command in a fleet folder, which nobody else sees or changes."""

    plan_file: Path  # it holds all that the state holds
    variables_file: Path  # what the plan is made with; not yet the folder's


class FleetFolder:
    """The folder of one fleet."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.variables_file = self.path / "fleet.auto.tfvars.json"
        self._private = self.path / ".spotwright"
        self._unfinished = self._private / "unfinished"  # there while a root is only a part of one
        self.cut_off_file = (
            self._private / "cut-off"
        )  # there from before an apply until it ends well
        self.config_file = self._private / "terraform.rc"

    @contextmanager
    def working(self) -> Iterator[Work]:
        """Have the folder to ourselves, from the plan to the end; a plan is not left behind.

        Terraform's own lock is free while the user is asked, when another command could plan.

        Raises:
            BusyError: another command works in the folder.
            OutsideWorldError: it cannot be written.
        """
        with _outside_world(self.path):
            self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._private.chmod(0o700)
            (self._private / ".gitignore").write_text("*\n", encoding="ascii")
            lock = open(self._private / "lock", "wb")  # noqa: SIM115 closed below
        with lock:
            self._lock(lock)
            for left in self._private.glob("work-*"):  # of a command that was killed
                shutil.rmtree(left, ignore_errors=True)
            try:
                with tempfile.TemporaryDirectory(dir=self._private, prefix="work-") as work:
                    yield Work(Path(work, "plan.tfplan"), Path(work, "next.tfvars.json"))
            finally:
                if not (self.is_root or self._unfinished.exists()):  # no fleet after all
                    shutil.rmtree(self._private, ignore_errors=True)
                    with suppress(OSError):  # something else is in it
                        self.path.rmdir()

    def _lock(self, lock: IO[bytes]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError(
                f"another apply or destroy works in {self.path}", retry_after_s=_RETRY_S
            ) from None

    @property
    def is_root(self) -> bool:
        """Tell whether Terraform has something to run here."""
        return not self._unfinished.exists() and any(
            [*self.path.glob("*.tf"), *self.path.glob("*.tf.json")]
        )

    @property
    def is_cut_off(self) -> bool:
        """Tell whether an apply here did not end well, and may have made what no state holds."""
        return self.cut_off_file.exists()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Have it known, also after a kill, that Terraform changes something and has yet to end.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        was_cut_off = self.is_cut_off
        with _outside_world(self.cut_off_file):
            self.cut_off_file.touch()
        try:
            yield
        except TerraformRefusedError:  # nothing was changed
            if not was_cut_off:
                self.settle()
            raise
        self.settle()

    def settle(self) -> None:
        """Forget that an apply was cut off: nothing is left of it that no state holds."""
        self.cut_off_file.unlink(missing_ok=True)

    def prepare(self, *, functions: bool) -> list[str]:
        """Make the folder a Terraform root if it is none; return what the user should know.

        No file that is there is written over.

        Args:
            functions: the fleet runs functions, so the root calls the serverless module.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        with _outside_world(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.is_root:
                return self._scaffold(functions=functions)
            if (self.path / _MODULE).is_dir() and self._differs():
                return [
                    f"{self.path / _MODULE} is not the module of this Spotwright; it is used as it "
                    "is (--upgrade-module replaces it)"
                ]
            return []

    def replace_module(self) -> None:
        """Put this Spotwright's module in place of the one that is there.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        with _outside_world(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._vendor()

    def make(self) -> None:
        """Make the folder, if it is not there.

        Raises:
            OutsideWorldError: it cannot be written.
        """
        with _outside_world(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def take_variables(self, text: str) -> Callable[[], None]:
        """Make variables the folder's own, whole or not at all; return what puts the old ones back.

        Raises:
            OutsideWorldError: the folder cannot be written.
        """
        with _outside_world(self.variables_file):
            former = self.variables_file.read_bytes() if self.variables_file.exists() else None
            _write_whole(self.variables_file, text.encode())

        def put_back() -> None:
            with _outside_world(self.variables_file):
                if former is None:
                    self.variables_file.unlink(missing_ok=True)
                else:
                    _write_whole(self.variables_file, former)

        return put_back

    def _scaffold(self, *, functions: bool) -> list[str]:
        example = packaged_module() / "examples" / ("serverless" if functions else "minimal")
        self._private.mkdir(mode=0o700, exist_ok=True)
        self._unfinished.touch()
        if not (self.path / _MODULE).exists():
            self._vendor()
        for source in sorted(example.glob("*.tf")):
            text = source.read_text(encoding="utf-8")
            (self.path / source.name).write_text(_vendored_source(text), encoding="utf-8")
        with suppress(FileExistsError), open(self.path / ".gitignore", "x", encoding="utf-8") as f:
            f.write(_IGNORED)
        self._unfinished.unlink()
        return [f"{self.path} is a new Terraform root; main.tf is yours to edit"]

    def _vendor(self) -> None:
        """Copy the module beside the one that is there, then swap: an end half-way spoils none."""
        ours = packaged_module()
        with tempfile.TemporaryDirectory(dir=self.path, prefix=".module-") as scratch:
            fresh = Path(scratch) / "new"
            for part in _parts(ours):
                target = fresh / part
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ours / part, target)
            old = Path(scratch) / "old"
            with suppress(FileNotFoundError):
                os.rename(self.path / _MODULE, old)
            try:
                os.rename(fresh, self.path / _MODULE)
            except OSError:
                with suppress(FileNotFoundError):
                    os.rename(old, self.path / _MODULE)
                raise

    def _differs(self) -> bool:
        ours, theirs = packaged_module(), self.path / _MODULE
        parts = _parts(ours)
        return parts != _parts(theirs) or any(
            (ours / part).read_bytes() != (theirs / part).read_bytes() for part in parts
        )


def packaged_module() -> Path:
    """Return where the module is: beside this file in a wheel, else in the checkout.

    Raises:
        OutsideWorldError: in neither place, so the installation is broken.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "module", here.parents[3] / "terraform"):
        if (folder / "versions.tf").is_file():
            return folder
    raise OutsideWorldError(f"the Terraform module is not beside {here}; install Spotwright again")


def _parts(module: Path) -> list[Path]:
    found = {p.relative_to(module) for pattern in _PARTS for p in module.glob(pattern)}
    return sorted(p for p in found if not _NO_PARTS & set(p.parts) and (module / p).is_file())


def _vendored_source(text: str) -> str:
    """Return an example that calls the copy of the module instead of the module around it."""
    return text.replace('"../../modules/', f'"./{_MODULE}/modules/').replace(
        '"../.."', f'"./{_MODULE}"'
    )


def _write_whole(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # it is committed, and holds no secret
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise


@contextmanager
def _outside_world(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutsideWorldError(
            f"cannot use {error.filename or path}: {error.strerror or error}; choose another "
            "folder with --dir, or change its permissions"
        ) from error
