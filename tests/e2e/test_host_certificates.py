"""A rented host's certificate, all the way: published, fetched at its first boot, let in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.grpc.access.guarded_server import SESSION, World, call, play
from tests.cli.command import spotwright, spotwright_here
from tests.cli.test_publish_certs import start_host
from tests.moto_server import REGION, MotoServer, moto
from tests.terraform.test_agent_cloud_init import TEMPLATE, render

__all__ = ["moto"]  # a fixture

# What the script uses of the AWS CLI, by the same library that the CLI is made of.
AWS = f"""#!{sys.executable}
import sys, boto3
service, verb, *rest = sys.argv[1:]
flags = dict(zip(rest, rest[1:]))
client = boto3.client(service, region_name=flags["--region"])
if verb == "get-parameter":
    assert "--with-decryption" in rest
    print(client.get_parameter(Name=flags["--name"], WithDecryption=True)["Parameter"]["Value"])
else:
    print(client.get_secret_value(SecretId=flags["--secret-id"])["SecretString"])
"""


@pytest.mark.parametrize("store", ["ssm", "secretsmanager"])
def test_a_published_certificate_is_fetched_and_lets_its_host_in_under_its_own_name(
    moto: MotoServer, tmp_path: Path, store: str
) -> None:
    tls, fleet = tmp_path / "tls", f"fleet-{store}"
    assert spotwright_here("certs", "init", "--dir", tls, "--host", "127.0.0.1").returncode == 0
    host = start_host(moto, fleet)
    where = ["--fleet", fleet, "--region", REGION, "--store", store]
    published = spotwright("certs", "publish", "--dir", tls, *where, environment=moto.environment())
    assert published.returncode == 0, published.stderr
    assert not (tls / "agents").exists()  # the key is on the shelf and nowhere else

    fetched = fetch(tmp_path, host, moto, fleet_name=fleet, certificate_store=store)
    for end in ("crt", "key"):
        (fetched / f"{host}.{end}").replace(tls / f"host.{end}")

    async def scene(world: World) -> None:
        async with world.channel("host") as channel:
            assert host in await call(channel, SESSION)

    play(tls, scene)


def fetch(folder: Path, host: str, moto: MotoServer, **values: str) -> Path:
    """Run the script of user data as the host would; return the folder it writes to."""
    script = render(
        folder, {"region": REGION, **values}, TEMPLATE.with_name("fetch-certificate.sh.tftpl")
    )
    (folder / "fetched/agents").mkdir(parents=True)
    aws = folder / "bin/aws"
    aws.parent.mkdir()
    aws.write_text(AWS)
    aws.chmod(0o755)
    environment = moto.environment() | {
        "PATH": f"{aws.parent}:{os.environ['PATH']}",
        "SPOTWRIGHT_AGENT_ID": host,
        "SPOTWRIGHT_TLS_DIR": str(folder / "fetched"),
    }
    done = subprocess.run(
        ["sh", "-c", f"set -eu\n{script}"],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "fetched/agents"
