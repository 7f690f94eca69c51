"""`spotwright certs publish`, against an emulated account."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from spotwright.adapters.tls.certificate_facts import facts_of
from tests.cli.command import SPOTWRIGHT, clean_environment, spotwright, spotwright_here
from tests.moto_server import REGION, MotoServer, moto

__all__ = ["moto"]  # a fixture
IMAGE = "ami-12c6146b"  # one that moto knows


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "tls"
    assert spotwright_here("certs", "init", "--dir", folder).returncode == 0
    return folder


def start_host(moto: MotoServer, fleet: str) -> str:
    tags = [{"Key": "Fleet", "Value": fleet}, {"Key": "Pool", "Value": "p"}]
    [host] = moto.client("ec2").run_instances(
        ImageId=IMAGE, MinCount=1, MaxCount=1, InstanceType="m5.large",
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"]  # fmt: skip
    return str(host["InstanceId"])


def arguments(tls: Path, fleet: str, *more: str) -> list[str | Path]:
    return ["certs", "publish", "--dir", tls, "--fleet", fleet, "--region", REGION, *more]


def shelved(moto: MotoServer, fleet: str) -> dict[str, str]:
    found = moto.client("ssm").get_parameters_by_path(
        Path=f"/spotwright/{fleet}/agents", WithDecryption=True
    )
    return {entry["Name"].rpartition("/")[2]: entry["Value"] for entry in found["Parameters"]}


def test_each_host_of_a_fleet_gets_a_certificate_of_the_authority(
    moto: MotoServer, tls: Path
) -> None:
    host = start_host(moto, "one")

    done = spotwright(*arguments(tls, "one", "--json"), environment=moto.environment())

    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [(h["step"], h["instance_id"]) for h in told["hosts"]] == [("issued", host)]
    value = shelved(moto, "one")[host]
    authority = x509.load_pem_x509_certificate((tls / "ca.crt").read_bytes())
    facts = facts_of("", x509.load_pem_x509_certificate(value.encode()), authorities=[authority])
    assert (facts.kind, facts.name, facts.of_this_ca) == ("agent", host, True)
    assert facts.expire_time.isoformat() == told["hosts"][0]["expire_time"]
    assert len(value) <= 4096  # what Parameter Store takes in its free tier


def test_no_key_of_a_host_is_left_in_the_folder_or_printed(moto: MotoServer, tls: Path) -> None:
    start_host(moto, "two")

    done = spotwright(*arguments(tls, "two"), environment=moto.environment())

    assert done.stdout.split()[:4] == ["done", "host", "ends", "issued"]
    assert "PRIVATE" not in done.stdout + done.stderr
    assert not (tls / "agents").exists()


def test_a_fleet_folder_says_which_fleet_and_where(
    moto: MotoServer, tls: Path, tmp_path: Path
) -> None:
    host = start_host(moto, "three")
    (tmp_path / "fleet.auto.tfvars.json").write_text(json.dumps(variables("three")))

    done = spotwright(
        "certs", "publish", "--dir", tls, "--fleet-dir", tmp_path, "--store", "secretsmanager",
        environment=moto.environment(),
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    secret = moto.client("secretsmanager").get_secret_value(
        SecretId=f"spotwright/three/agents/{host}"
    )
    assert secret["SecretString"].startswith("-----BEGIN CERTIFICATE-----\n")


def variables(fleet: str) -> dict[str, Any]:
    pool = {
        "role": "worker", "instance_type": "g5.xlarge", "zone_id": "use1-az4", "market": "spot",
        "node_count": 1, "max_price_usd_per_hour": "0.52", "efa_interfaces": 0,
    }  # fmt: skip
    return {
        "schema_version": 1, "fleet_name": fleet, "plan_id": "p", "region": REGION,
        "cost_usd_low": 1.0, "cost_usd_high": 2.0,
        "pools": {"worker-g5-xlarge-use1-az4-spot": pool},
    }  # fmt: skip


@contextmanager
def going_on(moto: MotoServer, tls: Path, fleet: str) -> Iterator["subprocess.Popen[str]"]:
    command = [SPOTWRIGHT, *arguments(tls, fleet, "--every", "0.2s", "--json")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=clean_environment(**moto.environment()),
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(60)
def test_hosts_that_come_and_go_are_followed_until_interrupted(moto: MotoServer, tls: Path) -> None:
    first = start_host(moto, "four")
    with going_on(moto, tls, "four") as process:
        assert process.stdout is not None
        steps = [json.loads(process.stdout.readline())]
        second = start_host(moto, "four")
        steps.append(json.loads(process.stdout.readline()))
        moto.client("ec2").terminate_instances(InstanceIds=[first])
        steps.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=30)

    assert [(step["step"], step["instance_id"]) for step in steps] == [
        ("issued", first), ("issued", second), ("removed", first),
    ]  # fmt: skip
    assert (process.returncode, out, told) == (0, "", "")
    assert shelved(moto, "four").keys() == {second}


def check_credentials(moto: MotoServer, *, after_calls: str) -> None:
    """Have AWS refuse the credentials of the tests, which it has never seen, after some calls."""
    url, plain = f"{moto.url}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    request = urllib.request.Request(url, data=after_calls.encode(), headers=plain)
    urllib.request.urlopen(request).close()


@pytest.mark.timeout(60)
def test_a_round_that_fails_is_told_and_tried_again(moto: MotoServer, tls: Path) -> None:
    host = start_host(moto, "five")
    check_credentials(moto, after_calls="0")
    try:
        with going_on(moto, tls, "five") as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert "tried again in 0.2 s" in process.stderr.readline()
            check_credentials(moto, after_calls="inf")
            assert json.loads(process.stdout.readline())["instance_id"] == host
    finally:
        check_credentials(moto, after_calls="inf")


def test_a_fleet_without_hosts_is_told(moto: MotoServer, tls: Path) -> None:
    done = spotwright(*arguments(tls, "none"), environment=moto.environment())

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"no host of the fleet none runs in {REGION}\n"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ([], "say which fleet"),
        (["--fleet", "f"], "say which fleet"),
        (["--fleet-dir", "x", "--region", "r"], "say which fleet"),
        (["--fleet", "../f", "--region", "r"], "no fleet's name"),
        (["--fleet-dir", "/nonexistent"], "no such file"),
        (["--fleet", "f", "--region", "r", "--every", "soon"], "--every"),
        (["--fleet", "f", "--region", "r", "--days", "3"], "--days"),
    ],
)
def test_bad_flags_are_refused(tls: Path, flags: list[str], problem: str) -> None:
    done = spotwright_here("certs", "publish", "--dir", tls, *flags)

    assert done.returncode == 2
    assert problem in done.stderr


def test_a_folder_without_an_authority_is_refused_before_aws_is_asked(tmp_path: Path) -> None:
    done = spotwright_here(*arguments(tmp_path, "f"))

    assert done.returncode == 2
    assert "spotwright certs init" in done.stderr
