"""A host's own certificate, fetched by the script that the module puts into user data."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adapters.grpc.access.guarded_server import SESSION, World, call, make_folder, play
from tests.terraform.test_agent_cloud_init import HOSTILE, TEMPLATE, VALUES, render

SCRIPT = TEMPLATE.with_name("fetch-certificate.sh.tftpl")
ASKED = {
    "ssm": "ssm get-parameter --with-decryption --query Parameter.Value "
    "--name /spotwright/resnet50/agents/gpu-7",
    "secretsmanager": "secretsmanager get-secret-value --query SecretString "
    "--secret-id spotwright/resnet50/agents/gpu-7",
}


@pytest.fixture(scope="module", params=sorted(ASKED))
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def script(store: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    values = {"fleet_name": "resnet50", "region": "us-east-1", "certificate_store": store}
    return render(tmp_path_factory.mktemp("rendered"), values, SCRIPT)


@dataclass
class Fetching:
    """The script run by sh, with an aws that prints a file or fails."""

    folder: Path

    def run(self, script: str, answer: str | None) -> subprocess.CompletedProcess[str]:
        bin_folder, self.tls = self.folder / "bin", self.folder / "tls"
        bin_folder.mkdir()
        (self.tls / "agents").mkdir(parents=True)
        if answer is not None:
            (self.folder / "answer").write_text(f"{answer}\n")  # the CLI ends its text with one
        aws = bin_folder / "aws"
        aws.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$*" > {self.folder}/asked\nexec cat {self.folder}/answer'
        )
        aws.chmod(0o755)
        return subprocess.run(
            ["sh", "-c", f"set -eu\n{script}"], capture_output=True, text=True, check=False,
            timeout=60,
            env={"PATH": f"{bin_folder}:{os.environ['PATH']}", "SPOTWRIGHT_AGENT_ID": "gpu-7",
                 "SPOTWRIGHT_TLS_DIR": str(self.tls)},
        )  # fmt: skip

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.tls / "agents").iterdir())


@pytest.fixture
def shelved(tmp_path: Path) -> tuple[Path, str]:
    """A folder of certificates, and an agent's as one text."""
    folder = make_folder(tmp_path / "made")
    return folder, "".join((folder / f"agents/gpu-7.{end}").read_text() for end in ("crt", "key"))


def test_what_is_fetched_is_split_and_the_daemon_takes_it_for_that_agent(
    tmp_path: Path, store: str, script: str, shelved: tuple[Path, str]
) -> None:
    folder, text = shelved
    fetching = Fetching(tmp_path)

    done = fetching.run(script, text)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert fetching.files() == ["gpu-7.crt", "gpu-7.key"]
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith(ASKED[store])
    assert "--region us-east-1" in asked
    for end in ("crt", "key"):
        (fetching.tls / f"agents/gpu-7.{end}").replace(folder / f"agents/fetched.{end}")

    async def scene(world: World) -> None:
        async with world.channel("agents/fetched") as channel:
            assert "gpu-7" in await call(channel, SESSION)

    play(folder, scene)


@pytest.mark.parametrize("part", ["nothing", "certificate", "cut", "no end", "other text"])
def test_what_is_missing_or_not_complete_is_refused_and_left_nowhere(
    tmp_path: Path, script: str, shelved: tuple[Path, str], part: str
) -> None:
    text = shelved[1]
    key_at = text.index("-----BEGIN PRIVATE")
    answers = {"nothing": None, "certificate": text[:key_at], "cut": text[: key_at + 90],
               "no end": text[: key_at - 30] + text[key_at:], "other text": "None"}  # fmt: skip
    fetching = Fetching(tmp_path)

    done = fetching.run(script, answers[part])

    assert done.returncode == 1
    assert "gpu-7" in done.stderr
    assert fetching.files() == []
    assert text[key_at + 30 : key_at + 80] not in done.stdout + done.stderr


def test_values_stay_values(tmp_path: Path) -> None:
    name = "x" + "|".join(HOSTILE) + "|$(touch evil)"
    values = {"fleet_name": name, "region": name, "certificate_store": "ssm"}
    rendered = tmp_path / "rendered"
    rendered.mkdir()
    fetching = Fetching(tmp_path)

    fetching.run(render(rendered, values, SCRIPT), None)

    asked = (tmp_path / "asked").read_bytes().decode()
    assert f"/spotwright/{name}/agents/gpu-7" in asked
    assert f"--region {name} " in asked


def test_user_data_stays_well_below_what_aws_takes(tmp_path: Path, script: str) -> None:
    authority = "-----BEGIN CERTIFICATE-----\n" + "x" * 1_000

    text = render(tmp_path, VALUES | {"ca_pem": authority, "tls_fetch_command": script})

    assert len(text.encode()) < 9_000  # of 16,384; the user's own script is added
