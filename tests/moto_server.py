"""An AWS of our own on loopback: moto as a server, in a process that can be killed.

A test that needs one imports the fixture `moto` by name; it is shared by the tests of a file, which
take fleet names of their own. Terraform and boto3 reach it by `environment`.
"""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.ports import stable_port

REGION = "us-east-1"
_START_S = 60.0


class MotoServer:
    """One emulated account; killed, it has forgotten everything."""

    def __init__(self) -> None:
        self.port = stable_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it answers."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.serial_moto", str(self.port)],
            cwd=Path(__file__).parents[1],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_without_account(),
        )  # fmt: skip
        end = time.monotonic() + _START_S
        while not self._answers():
            assert self._process.poll() is None, "moto ended"
            assert time.monotonic() < end, "moto does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """End at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/data.json", timeout=5):
                return True
        except OSError:
            return False

    def environment(self, region: str = REGION) -> dict[str, str]:
        """Return the variables of a process that takes this for AWS."""
        return _without_account() | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "3",
        }

    def client(self, service: str, region: str = REGION) -> Any:
        """Return a boto3 client of it."""
        return boto3.client(  # type: ignore[call-overload]
            service,
            endpoint_url=self.url,
            region_name=region,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def instances(self, fleet_name: str, region: str = REGION) -> list[dict[str, Any]]:
        """Return what runs under a fleet's name."""
        filters = [
            {"Name": "tag:Fleet", "Values": [fleet_name]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        pages = (
            self.client("ec2", region).get_paginator("describe_instances").paginate(Filters=filters)
        )
        return [i for page in pages for r in page["Reservations"] for i in r["Instances"]]


def _without_account() -> dict[str, str]:
    """Return this process's environment with nothing that leads to a real account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nothing = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return kept | nothing


@contextmanager
def moto_server() -> Iterator[MotoServer]:
    """Run one."""
    server = MotoServer()
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoServer]:
    with moto_server() as server:
        yield server
