"""The real Terraform, run as a user would, in an environment that finds its providers."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from spotwright.adapters.terraform.environment import provider_mirror, terraform_environment
from tests.outside_tools import require, require_tool

MODULE = Path(__file__).parents[1] / "terraform"
_CONFIG_FILE = Path(tempfile.gettempdir()) / f"spotwright-tests-{os.getuid()}.tfrc"


def require_aws_provider() -> None:
    """Go on only if Terraform can have the AWS provider without asking its registry."""
    require_tool("terraform")
    mirror = provider_mirror(os.environ)
    implied = Path.home() / ".terraform.d/plugins"
    require(mirror or implied.is_dir(), "there is no mirror of Terraform's AWS provider")


def run_terraform(
    folder: Path, *arguments: str, environment: Mapping[str, str], timeout_s: float = 200.0
) -> subprocess.CompletedProcess[str]:
    """Run one command in a folder; whoever asks looks at the exit code.

    Its providers end with it, also where it takes too long.
    """
    command = ["terraform", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=terraform_environment(environment, config_file=_CONFIG_FILE)
        | {"TF_CLI_ARGS": "-no-color"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
