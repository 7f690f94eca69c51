"""Terraform in one folder: python-terraform writes the commands, `process` runs them.

python-terraform's own way to run them is not used: it hands over the output only at the end, does
not pass on signals, and its `destroy` gives a flag that Terraform no longer has.
"""

import hashlib
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import python_terraform
from python_terraform import IsFlagged

from spotwright.adapters.terraform.changes import PlanEvents, ResourceChange
from spotwright.adapters.terraform.failures import explain, interrupted
from spotwright.adapters.terraform.held_state import HeldState, read_state
from spotwright.adapters.terraform.process import Ended, run
from spotwright.adapters.terraform.program import Program
from spotwright.domain.errors import (
    TerraformError,
    TerraformInterruptedError,
    TerraformRefusedError,
)

_CHANGES = 2  # exit code of `plan -detailed-exitcode`
_NO_STATE = os.path.join(os.devnull, "none")  # never there: python-terraform would read a whole one
_NO_STATE_YET = "No state file was found"
_REFUSALS = ("Saved plan is stale", "Error acquiring the state lock")  # and nothing was done
_LOCK_FILE = ".terraform.lock.hcl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a saved plan would do."""

    is_changed: bool  # also where only outputs change
    changes: tuple[ResourceChange, ...]  # by address
    gone: tuple[str, ...]  # addresses of what somebody else removed


def data_folder(folder: Path, environment: Mapping[str, str]) -> Path:
    """Return where Terraform keeps what `init` fetches for a root."""
    return folder / environment.get("TF_DATA_DIR", ".terraform")


class Terraform:
    """The commands that Spotwright gives to Terraform in one fleet folder."""

    def __init__(
        self,
        folder: Path,
        program: Program,
        *,
        environment: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        """Prepare to run in a folder.

        Args:
            folder: a Terraform root.
            program: what is run.
            environment: the variables it is run with.
            say: told each line of output while a command runs.
        """
        self._folder, self._program = folder, program
        self._environment, self._say = environment, say
        self._commands = python_terraform.Terraform(
            state=_NO_STATE, terraform_bin_path=program.path
        )

    def init(self) -> None:
        """Have modules and providers in place; nothing is done where they are.

        Terraform's own `init` needs a second to see that nothing is to be done. It is passed over
        while the program, the configuration and the lock file are those of the last success;
        what that misses, the next command finds, and then `init` runs again.

        Raises:
            TerraformError: it failed; the message says what to do.
        """
        with suppress(OSError):
            if self._mark.read_text(encoding="utf-8") == self._fingerprint():
                return
        self._run("init")
        with suppress(OSError):  # no folder for it: there was nothing to have in place
            self._mark.write_text(self._fingerprint(), encoding="utf-8")

    def plan(
        self,
        out: Path,
        *,
        variables: Path | None = None,
        destroy: bool = False,
        lock: bool = True,
    ) -> Planned:
        """Save in `out` what would be done, and tell it.

        Args:
            out: the file of the plan.
            variables: a file that comes before those of the folder.
            destroy: plan the end of everything.
            lock: keep others from the state meanwhile; a plan that is only looked at need not.

        Raises:
            TerraformError: it failed; the message says what to do.
        """
        events = PlanEvents(self._say)
        ended = self._ended(
            "plan",
            say=events.take,
            json=IsFlagged,
            input=False,
            detailed_exitcode=IsFlagged,
            destroy=IsFlagged if destroy else None,
            lock=None if lock else False,
            var_file=None if variables is None else os.path.abspath(variables),
            out=os.path.abspath(out),
        )
        if ended.exit_code != _CHANGES:
            self._check("plan", ended, events.errors or events.last_words)
        is_changed = ended.exit_code == _CHANGES
        return Planned(is_changed=is_changed, changes=events.changes, gone=events.gone)

    def apply(self, plan_file: Path) -> None:
        """Do what a saved plan says, and nothing else.

        Raises:
            TerraformError: it failed, for example because the state changed since the plan.
        """
        self._run("apply", os.path.abspath(plan_file))

    def resources(self) -> tuple[str, ...]:
        """Return the addresses of what the state holds.

        Raises:
            TerraformError: the state cannot be read.
        """
        ended, answer = self._answer("state list")
        if ended.exit_code and _NO_STATE_YET in ended.output:
            return ()
        self._check("state list", ended, ended.output)
        return tuple(answer.split("\n")[:-1])

    def state(self) -> HeldState:
        """Return the addresses and the ids of what the state holds.

        Raises:
            TerraformError: the state cannot be read.
        """
        ended, answer = self._answer("state pull")
        self._check("state pull", ended, ended.output)
        return read_state(answer)

    def take_in(self, address: str, thing_id: str) -> None:
        """Have the state hold something that is there already, at the address it belongs to.

        Raises:
            TerraformError: it failed, for example because the configuration has no such address.
        """
        self._run("import", address, thing_id)

    def _run(self, command: str, *arguments: str) -> None:
        ended = self._ended(command, *arguments, input=False, no_color=IsFlagged)
        self._check(command, ended, ended.output)

    def _answer(self, command: str) -> tuple[Ended, str]:
        """Return how a question about the state ended, and the answer.

        What it says beside that is told by whoever takes it for an error: a folder that has no
        state yet is none.
        """
        with tempfile.TemporaryFile() as answer:
            ended = self._ended(command, say=lambda _: None, stdout=answer, no_color=IsFlagged)
            answer.seek(0)
            return ended, answer.read().decode()

    def _ended(
        self,
        command: str,
        *arguments: str,
        say: Callable[[str], None] | None = None,
        stdout: IO[bytes] | None = None,
        **options: object,
    ) -> Ended:
        ended = run(
            self._commands.generate_cmd_string(command, *arguments, **options),
            folder=self._folder,
            environment=self._environment,
            say=say or self._say,
            stdout=stdout,
        )
        if ended.stop_count and not (command == "apply" and ended.exit_code == 0):
            # An apply that ended well is done, however late somebody asked it to stop. Whatever
            # else ended well was on the way to an apply, which nobody wants any more.
            doing = f"{self._program.name} {command}"
            raise TerraformInterruptedError(interrupted(doing, stop_count=ended.stop_count))
        return ended

    def _check(self, command: str, ended: Ended, output: str) -> None:
        """Raise what a run that failed means; the folder is initialised anew after it."""
        if ended.exit_code == 0:
            return
        with suppress(OSError):
            self._mark.unlink()
        refused = any(text in output for text in _REFUSALS)
        kind = TerraformRefusedError if refused else TerraformError
        doing = f"{self._program.name} {command}"
        raise kind(explain(output, doing=doing, exit_code=ended.exit_code))

    def show_command(self, plan_file: Path) -> str:
        """Return what tells every attribute of a saved plan, to be run in any folder."""
        words = [self._program.path, f"-chdir={self._folder}", "show", os.path.abspath(plan_file)]
        return shlex.join(words)

    @property
    def _data_folder(self) -> Path:
        return data_folder(self._folder, self._environment)

    @property
    def _mark(self) -> Path:
        return self._data_folder / "spotwright-initialised"

    def _fingerprint(self) -> str:
        settings = {k: v for k, v in self._environment.items() if k.startswith("TF_")}
        said = repr((self._program, sorted(settings.items())))
        files = [self._folder / _LOCK_FILE]
        files += sorted([*self._folder.rglob("*.tf"), *self._folder.rglob("*.tf.json")])
        digest = hashlib.sha256(said.encode())
        for path in files:
            if path.is_file() and self._data_folder not in path.parents:
                digest.update(repr((str(path), path.read_bytes())).encode())
        return digest.hexdigest()
