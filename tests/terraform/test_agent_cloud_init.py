"""The agent's cloud-init, rendered by the real Terraform, and its script run with stand-ins."""

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.outside_tools import require_tool

TEMPLATE = Path(__file__).parents[2] / "terraform" / "cloud-init" / "agent.yaml.tftpl"
VALUES = {
    "daemon_address": "gpu-head.internal:7443",
    "job_id": "j-1",
    "ca_pem": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
    "package": "spotwright==0.1.0",
    "tls_fetch_command": 'cp /keys/x "$SPOTWRIGHT_TLS_DIR/agents/"',
}
INSTALLER = "/etc/systemd/system/spotwright-agent-install.service"
TIMER = Path("/etc/systemd/system/spotwright-agent-renew.timer")
FETCH = (
    'for end in crt key; do echo x > "$SPOTWRIGHT_TLS_DIR/agents/$SPOTWRIGHT_AGENT_ID.$end"; done'
)
HOSTILE = [
    '"', "'", "a\nruncmd: [evil]", '"]\n  - path: /etc/passwd', "${file(1)}", "%{ if true }", "\\",
    "\\n", "<>&", "é\U0001f600", "\u2028", "#", ": ", "\ttab", "a\r\nb", "$(touch x)", "`x`",
]  # fmt: skip


def render(folder: Path, values: dict[str, str], template: Path = TEMPLATE) -> str:
    require_tool("terraform")
    names = json.dumps(sorted(values))
    (folder / "main.tf").write_text(
        'variable "values" { type = map(string) }\n'
        f'output "text" {{ value = templatefile("{template}", '
        f"{{ for name in {names} : name => var.values[name] }}) }}\n"
    )
    (folder / "terraform.tfvars.json").write_text(json.dumps({"values": values}))
    environment = os.environ | {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    for command in (["apply", "-auto-approve", "-input=false"], ["output", "-json", "text"]):
        done = subprocess.run(
            ["terraform", *command, "-no-color"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout))


def files_of(text: str) -> dict[str, dict[str, Any]]:
    document = yaml.safe_load(text)
    assert set(document) == {"write_files", "runcmd"}
    (command,) = document["runcmd"]
    assert command[:2] == ["systemctl", "enable"]
    assert {"--now", "--no-block", Path(INSTALLER).name, TIMER.name} <= set(command)
    return {file["path"]: file for file in document["write_files"]}


def test_settings_authority_and_scripts_are_written(tmp_path: Path) -> None:
    text = render(tmp_path, VALUES)

    files = files_of(text)
    assert text.startswith("#cloud-config\n")
    assert tomllib.loads(files["/etc/spotwright/agent.toml"]["content"]) == {
        "daemon": "gpu-head.internal:7443",
        "job_id": "j-1",
        "tls_dir": "/etc/spotwright/agent-tls",
    }
    assert files["/opt/spotwright/boot/ca.crt"]["content"] == VALUES["ca_pem"]
    fetch = files["/opt/spotwright/boot/fetch-tls"]
    assert fetch["content"].splitlines()[-1] == VALUES["tls_fetch_command"]
    assert fetch["permissions"] == "0700"
    assert len(files) == 8


@pytest.mark.parametrize("name", sorted(VALUES))
def test_no_value_can_break_out_of_its_place(tmp_path: Path, name: str) -> None:
    value = "x" + "|".join(HOSTILE) + "|x"

    files = files_of(render(tmp_path, VALUES | {name: value}))

    settings = tomllib.loads(files["/etc/spotwright/agent.toml"]["content"])
    found = {
        "daemon_address": settings["daemon"],
        "job_id": settings["job_id"],
        "ca_pem": files["/opt/spotwright/boot/ca.crt"]["content"],
        "package": files["/opt/spotwright/boot/package"]["content"][:-1],
        "tls_fetch_command": files["/opt/spotwright/boot/fetch-tls"]["content"][18:-1],
    }
    assert found == VALUES | {name: value}
    assert len(files) == 8


class Host:
    """A host that boots, in a folder; python3, pip and the agent write down what they are told."""

    def __init__(self, folder: Path, values: dict[str, str]) -> None:
        self.root = folder / "host"
        (self.root / "var/lib/cloud/data").mkdir(parents=True)
        (self.root / "var/lib/cloud/data/instance-id").write_text("i-0abc\n")
        for path, file in files_of(render(folder, values)).items():
            target = self.root / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._here(file["content"]))
            target.chmod(int(file["permissions"], 8))
        self.log = folder / "log"
        record = f'#!/bin/sh\nprintf "%s|" "$(basename "$0")" "$@" >> {self.log}\n'
        record += f"echo >> {self.log}\n"
        self._program("sleep", record)
        self._program(
            "python3",
            record + f'for p in pip spotwright-agent; do mkdir -p "$3/bin"; '
            f'cp {folder}/bin/sleep "$3/bin/$p"; done\n'
            f'echo \'ls "$3/agents" >> {self.log}\' >> "$3/bin/spotwright-agent"\n',
        )  # fmt: skip

    def _here(self, text: str) -> str:
        for top in ("/opt/spotwright/", "/etc/spotwright/", "/var/lib/cloud/"):
            text = text.replace(top, f"{self.root}{top}")
        return text

    def _program(self, name: str, text: str) -> None:
        path = self.root.parent / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def boot(self) -> subprocess.CompletedProcess[str]:
        path = f"{self.root.parent / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [self.root / "opt/spotwright/boot/install-agent"],
            env={"PATH": path}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip


def test_a_host_that_boots_fetches_its_certificate_and_installs_the_agent(tmp_path: Path) -> None:
    package = "spotwright @ file:///a b'c\"d"
    host = Host(tmp_path, VALUES | {"tls_fetch_command": FETCH, "package": package})

    done = host.boot()

    assert (done.returncode, done.stderr) == (0, "")
    venv, pip, agent, *files = host.log.read_text().splitlines()
    assert venv == f"python3|-m|venv|{host.root}/opt/spotwright/agent|"
    assert pip == f"pip|install|--quiet|--|{package}|"
    assert agent.startswith("spotwright-agent|install|--tls-from|")
    assert files == ["i-0abc.crt", "i-0abc.key"]
    told = tomllib.loads((host.root / "etc/spotwright/agent.toml").read_text())
    assert told["agent_id"] == "i-0abc"
    assert not Path(agent.split("|")[3]).exists()  # the key is not left behind


def test_an_installed_host_takes_only_a_certificate_that_is_new(tmp_path: Path) -> None:
    host = Host(tmp_path, VALUES | {"tls_fetch_command": FETCH})
    host.boot()
    own = host.root / "etc/spotwright/agent-tls/agents/i-0abc.crt"
    own.parent.mkdir(parents=True)

    own.write_text("x\n")  # what is fetched
    host.log.unlink()
    assert host.boot().returncode == 0
    assert not host.log.exists()

    own.write_text("older\n")
    assert host.boot().returncode == 0
    [agent, *_] = host.log.read_text().splitlines()  # neither venv nor pip
    assert agent.startswith("spotwright-agent|install|--tls-from|")


def test_a_host_whose_certificate_comes_late_is_installed_at_a_later_try(tmp_path: Path) -> None:
    host = Host(tmp_path, VALUES | {"tls_fetch_command": f"test -e {tmp_path}/issued"})
    installed = host.root / "opt/spotwright/boot/installed"

    early = host.boot()

    assert early.returncode == 1
    assert "no certificate for i-0abc yet" in early.stderr
    assert not host.log.exists()  # no package is fetched in vain
    assert not installed.exists()

    (tmp_path / "issued").touch()

    assert host.boot().returncode == 0
    assert "spotwright-agent|install|" in host.log.read_text()
    assert installed.exists()


def test_systemd_tries_again_until_the_agent_is_installed(tmp_path: Path) -> None:
    tool = require_tool("systemd-analyze")
    host = Host(tmp_path, VALUES)
    units = sorted((host.root / "etc/systemd/system").iterdir())

    done = subprocess.run([tool, "verify", *units], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [unit.name.removeprefix("spotwright-agent-") for unit in units] == [
        "install.service", "renew.service", "renew.timer",
    ]  # fmt: skip
    keys, renewal, timer = (
        dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line)
        for unit in units
    )
    assert keys["Restart"] == "on-failure"
    assert keys["StartLimitIntervalSec"] == "0"  # never gives up
    assert keys["ConditionPathExists"] == f"!{host.root}/opt/spotwright/boot/installed"
    assert renewal["ConditionPathExists"] == f"{host.root}/opt/spotwright/boot/installed"
    assert renewal["ExecStart"] == keys["ExecStart"]
    assert timer["OnCalendar"] == "daily"
