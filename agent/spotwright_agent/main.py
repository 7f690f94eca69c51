"""The agent of Spotwright: tells the daemon what this GPU host does, and warns training."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from spotwright_agent.check.command import add_check_command
from spotwright_agent.install import add_install_command
from spotwright_agent.probe.command import add_probe_command
from spotwright_agent.settings import SettingsError, add_setting_flags, settings_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code = int(options.act(options))
        sys.stdout.flush()
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = f" {error.filename}" if error.filename else ""
        print(f"error:{where} {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spotwright-agent", description=__doc__)
    parser.add_argument("--version", action="version", version=version("spotwright"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands)
    add_check_command(commands)
    add_probe_command(commands)
    add_install_command(commands)
    return parser


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "sample this host, report to the daemon, watch for interruptions; until stopped"
    run = commands.add_parser("run", help=about, description=about.capitalize() + ".")
    add_setting_flags(run)
    run.add_argument("--verbose", action="store_true", help="log more")
    run.set_defaults(act=_run)


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it would say of sessions, we say
    from spotwright_agent.run import run  # noqa: PLC0415

    return run(settings, verbose=options.verbose)


if __name__ == "__main__":
    sys.exit(main())
