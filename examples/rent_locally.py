"""A fleet rented by Terraform from an AWS that runs on this machine.

    make demo             # ends with it; or: .venv/bin/python -m examples.rent_locally

`spotwright`, Terraform and its AWS provider are the real ones; AWS is moto, on loopback, so nothing
costs money and no account is needed. Where Terraform or its provider is missing it says so and ends
well; where `apply` or `destroy` fails for another reason it ends with 1.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3

_SPOTWRIGHT = str(Path(sys.executable).with_name("spotwright"))
_JOB = "examples/resnet50.yaml"
_FLEET, _REGION = "resnet50", "us-east-1"
_START_S = 30.0
_NO_PROVIDER = "the AWS provider cannot be had"  # as `spotwright apply` explains it
_NOT_RENTED = ", so the demo ends here without renting a fleet: see docs/terraform.md"


def main() -> int:
    """Rent the fleet of an example job, look at it, and give it up."""
    if shutil.which("terraform") is None and shutil.which("tofu") is None:
        print(f"\nTerraform is not on the PATH{_NOT_RENTED}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sw-") as folder, _local_aws() as url:
        environment = _account(url)
        where = ("--dir", str(Path(folder, "fleet")))
        failed, told = _run("apply", _JOB, *where, "--auto-approve", environment=environment)
        if failed and _NO_PROVIDER in told:
            print(f"\nTerraform's AWS provider is not here{_NOT_RENTED}")
            return 0
        if failed:
            return 1
        _show_instances(url)
        _run("reconcile", *where, environment=environment)
        print("(moto starts on-demand nodes where spot is asked for, and reconcile finds that out)")
        failed, _ = _run("destroy", *where, "--auto-approve", environment=environment)
        _show_instances(url)
    return 1 if failed else 0


@contextmanager
def _local_aws() -> Iterator[str]:
    """Run moto on a free port of loopback, and return its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    moto = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/moto-api/data.json")
        yield url
    finally:
        moto.terminate()
        moto.wait()


def _wait_for(url: str) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _account(url: str) -> dict[str, str]:
    """Return an environment in which the local AWS is the only one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": _REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "3",
    }


def _run(*arguments: str, environment: dict[str, str]) -> tuple[bool, str]:
    """Return whether a command failed, and what it told on standard error, which is shown too."""
    print(f"\n$ spotwright {' '.join(arguments)}", flush=True)
    told = []
    command = [_SPOTWRIGHT, *arguments]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            told.append(line)
    return process.returncode != 0, "".join(told)


def _show_instances(url: str) -> None:
    """Print what EC2 says that it runs."""
    ec2 = boto3.client(
        "ec2",
        region_name=_REGION,
        endpoint_url=url,
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 the emulator takes any
    )
    filters = [
        {"Name": "tag:Fleet", "Values": [_FLEET]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    found = ec2.describe_instances(Filters=filters)["Reservations"]  # type: ignore[arg-type]
    counts = Counter(
        (instance["InstanceType"], instance["Placement"]["AvailabilityZone"])
        for reservation in found
        for instance in reservation["Instances"]
    )
    print(f"\n$ aws ec2 describe-instances --filters Name=tag:Fleet,Values={_FLEET} ...")
    for (kind, zone), count in sorted(counts.items()):
        print(f"{count} x {kind} in {zone}")
    if not counts:
        print("none")


if __name__ == "__main__":
    sys.exit(main())
