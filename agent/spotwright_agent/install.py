"""`spotwright-agent install`: the unit, its user, settings and certificates put in place.

What is right already is left alone, so that it may be run again at any time: to upgrade, or to
bring new certificates. A file is there whole or not at all.
"""

import argparse
import grp
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spotwright_agent.settings import DEFAULT_FILE, Settings, SettingsError, read_settings
from spotwright_agent.tls_files import TlsFiles, pair_problem

USER = "spotwright-agent"
SERVICE = "spotwright-agent.service"
# Not the daemon's /etc/spotwright/tls, which only the daemon may read when both are on one host.
TLS_FOLDER = Path("/etc/spotwright/agent-tls")
DEFAULT_SIGNAL = "SIGUSR1"
_PROGRAM_OF_UNIT = "/opt/spotwright/bin/spotwright-agent"
_UNIT = Path("/etc/systemd/system") / SERVICE
_DROP_IN = _UNIT.with_name(f"{SERVICE}.d") / "signal-training.conf"
_SYSUSERS = Path("/etc/sysusers.d/spotwright-agent.conf")
_TMPFILES = Path("/etc/tmpfiles.d/spotwright-agent.conf")
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/._+@-]+")  # needs no quotes in a unit
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 by the unit, from the agent


class InstallError(Exception):
    """The agent cannot be installed like this; the text says what to change."""


def _own_program() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "spotwright-agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """What is to be installed, and where."""

    root: Path = Path("/")
    program: str = field(default_factory=_own_program)
    settings: Mapping[str, str] = field(default_factory=dict)  # by name, as in agent.toml
    tls_from: Path | None = None  # a folder as `spotwright certs` makes it
    signal_training: bool = False
    force: bool = False  # write agent.toml anew
    dry_run: bool = False
    start: bool = True

    @property
    def on_this_host(self) -> bool:
        """Whether it is for the system that runs here, not for an image."""
        return self.root == Path("/")

    def path(self, path: Path) -> Path:
        """Return where a path of the installed system is now."""
        return self.root / path.relative_to("/")


def install(plan: InstallPlan) -> Iterator[str]:
    """Install step by step, and tell each thing once it is done.

    Raises:
        InstallError: something is missing or does not fit.
        SettingsError: agent.toml, there or to be written, cannot be used.
    """
    _check_host(plan)
    settings, is_new = _settings(plan)
    certificates = _certificates(plan, settings)
    yield from _place(plan, _SYSUSERS, _shipped("sysusers.conf"))
    yield from _run(plan, "systemd-sysusers", f"--root={plan.root}", _SYSUSERS.name)
    yield from _place(plan, _TMPFILES, _shipped("tmpfiles.conf"))
    if plan.on_this_host:
        yield from _run(plan, "systemd-tmpfiles", "--create", _TMPFILES.name)
    for path, content in certificates.items():
        yield from _place(plan, path, content, is_secret=True)
    if is_new:
        yield from _place(plan, DEFAULT_FILE, _as_toml(plan, settings))
    else:
        yield f"kept {plan.path(DEFAULT_FILE)}; --force writes it anew"
    unit = _shipped(SERVICE).replace(_PROGRAM_OF_UNIT.encode(), _program(plan).encode())
    yield from _place(plan, _UNIT, unit)
    if plan.signal_training:
        yield from _place(plan, _DROP_IN, _shipped(_DROP_IN.name))
    yield from _enable(plan)


def systemd_folder() -> Path:
    """Return where the unit is: in the package once installed, beside it in a checkout."""
    packaged = Path(__file__).parent / "systemd"
    return packaged if packaged.is_dir() else Path(__file__).parents[1] / "systemd"


def add_install_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `install` and its flags."""
    about = "install the agent as a service of systemd on this host; needs root"
    parser = commands.add_parser("install", help=about, description=about.capitalize() + ".")
    parser.add_argument("--daemon", metavar="HOST:PORT", help="where the daemon listens")
    parser.add_argument("--agent-id", metavar="ID", help="name of this agent [the host's name]")
    parser.add_argument("--job-id", metavar="ID", help="job that this host works for")
    parser.add_argument(
        "--tls-from", type=Path, metavar="DIR", help="copy ca.crt and agents/ID.crt and .key"
    )
    parser.add_argument(
        "--signal-training", action="store_true",
        help=f"let it send {DEFAULT_SIGNAL} to training when a notice comes (CAP_KILL)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="write agent.toml anew")
    parser.add_argument("--no-start", action="store_true", help="enable, but do not start it")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    parser.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR", help="install into an image"
    )
    parser.set_defaults(act=run_install)


def run_install(options: argparse.Namespace) -> int:
    """Install as the flags say and print each step."""
    told = {name: getattr(options, name) for name in ("daemon", "agent_id", "job_id")}
    plan = InstallPlan(
        root=options.root.absolute(),
        settings={name: value for name, value in told.items() if value is not None},
        tls_from=options.tls_from,
        signal_training=options.signal_training,
        force=options.force,
        dry_run=options.dry_run,
        start=not options.no_start,
    )
    try:
        for line in install(plan):
            print(line, flush=True)
    except InstallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _program(plan: InstallPlan) -> str:
    """Return the agent's program as the installed system will call it."""
    program = Path(plan.program)
    if program.is_relative_to(plan.root):
        program = Path("/") / program.relative_to(plan.root)
    return str(program)


def _check_host(plan: InstallPlan) -> None:
    if not Path(plan.program).is_file():
        raise InstallError(f"{plan.program} is not there: install the package spotwright with pip")
    if not _PLAIN_PATH.fullmatch(_program(plan)):
        raise InstallError(f"{_program(plan)!r} has characters that a unit would misread")
    if not plan.root.is_dir():
        raise InstallError(f"{plan.root} is not a folder")
    if plan.dry_run:
        return
    if os.geteuid() != 0:
        raise InstallError("only root may install the agent: use sudo, or --dry-run to look")
    if not plan.on_this_host:
        return
    for path in (plan.program, sys.base_prefix):
        if any(Path(path).is_relative_to(hidden) for hidden in _HIDDEN):
            raise InstallError(
                f"{path} is hidden from the agent by its unit: make a virtual environment "
                "elsewhere, as /opt/spotwright, from a Python of the system"
            )
    if plan.start and not Path("/run/systemd/system").is_dir():
        raise InstallError("systemd does not run here: use --no-start, or `spotwright-agent run`")


def _settings(plan: InstallPlan) -> tuple[Settings, bool]:
    """Return what holds on the installed system, and whether it has to be written."""
    path = plan.path(DEFAULT_FILE)
    if path.exists() and not plan.force:
        return read_settings(flags={}, environment={}, file=path), False
    told = dict(plan.settings)
    if plan.tls_from is not None:
        told["tls_dir"] = str(TLS_FOLDER)
    if plan.signal_training:
        told["job_signal"] = DEFAULT_SIGNAL
    return Settings(**told), True  # type: ignore[arg-type]  # each of these is text


def _as_toml(plan: InstallPlan, settings: Settings) -> bytes:
    names = [*plan.settings, *(["tls_dir"] if plan.tls_from else [])]
    names += ["job_signal"] if plan.signal_training else []
    lines = [f"{name} = {_quoted(getattr(settings, name))}" for name in names]
    return "\n".join(["# What can be set here: docs/agent.md", *lines, ""]).encode()


def _quoted(text: str) -> str:
    # JSON's way to quote is TOML's but for this one character.
    quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    try:
        quoted.encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{text!r} is not text") from error
    return quoted


def _certificates(plan: InstallPlan, settings: Settings) -> dict[Path, bytes]:
    """Return what is to be copied, by where it belongs; the key before its certificate."""
    if plan.tls_from is None:
        return {}
    if settings.tls_files is None:
        raise InstallError(f"{plan.path(DEFAULT_FILE)} has no tls_dir: add it, or use --force")
    source = TlsFiles.of(plan.tls_from, settings.name)
    if problem := pair_problem(source, settings.name):
        raise InstallError(problem)
    target = settings.tls_files
    pairs = ((target.authority, source.authority), (target.key, source.key),
             (target.certificate, source.certificate))  # fmt: skip
    return {to: path.read_bytes() for to, path in pairs}


def _shipped(name: str) -> bytes:
    return (systemd_folder() / name).read_bytes()


def _place(
    plan: InstallPlan, path: Path, content: bytes, *, is_secret: bool = False
) -> Iterator[str]:
    """Make a file have this content, mode and owner."""
    target = plan.path(path)
    if plan.dry_run:
        yield f"would write {target}"
        return
    mode, group = (0o640, _group_id(plan)) if is_secret else (0o644, 0)
    for folder in reversed([target.parent, *target.parent.parents]):
        is_private = is_secret and folder.is_relative_to(plan.path(TLS_FOLDER))
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)  # whatever the umask: the agent has to pass
        if is_private:
            os.chown(folder, 0, group)
            folder.chmod(0o750)
    yield f"{'wrote' if _write(target, content, mode=mode, group=group) else 'unchanged'} {target}"


def _write(target: Path, content: bytes, *, mode: int, group: int) -> bool:
    """Replace a file in one step; return False if there was nothing to change."""
    if target.is_file() and not target.is_symlink() and target.read_bytes() == content:
        now = target.stat()
        if (now.st_mode & 0o7777, now.st_uid, now.st_gid) == (mode, 0, group):
            return False
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
            os.fchown(out.fileno(), 0, group)
            os.fchmod(out.fileno(), mode)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return True


def _group_id(plan: InstallPlan) -> int:
    if plan.on_this_host:
        return grp.getgrnam(USER).gr_gid
    for line in plan.path(Path("/etc/group")).read_text(encoding="utf-8").splitlines():
        name, _, gid, *_ = line.split(":")
        if name == USER:
            return int(gid)
    raise InstallError(f"systemd-sysusers made no group {USER} in {plan.root}")


def _enable(plan: InstallPlan) -> Iterator[str]:
    yield from _run(plan, "systemctl", f"--root={plan.root}", "enable", SERVICE)
    if plan.start and plan.on_this_host:
        yield from _run(plan, "systemctl", "daemon-reload")
        # Waits until it samples, or says why it does not.
        yield from _run(plan, "systemctl", "restart", SERVICE)


def _run(plan: InstallPlan, tool: str, *arguments: str) -> Iterator[str]:
    import subprocess  # noqa: PLC0415  not for `run`

    command = " ".join([tool, *arguments])
    if plan.dry_run:
        yield f"would run {command}"
        return
    found = shutil.which(tool)
    if found is None:
        raise InstallError(f"{tool} is not on the PATH: the service needs systemd")
    done = subprocess.run(
        [found, *arguments], capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode != 0:
        raise InstallError(f"`{command}` failed: {done.stderr.strip() or done.returncode}")
    yield f"ran {command}"
