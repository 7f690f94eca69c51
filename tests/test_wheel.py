"""What `pip install` gives: the built wheel, unpacked."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "daemon", "agent", "terraform")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in PARTS:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, source / name)
    left = source / "terraform/examples/minimal"  # by whoever tried the example out
    (left / ".terraform").mkdir(exist_ok=True)
    for name in (".terraform/providers", ".terraform.lock.hcl", "terraform.tfstate"):
        (left / name).write_text("secret")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built],
        cwd=source, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(built / "unpacked")
    return built / "unpacked"


def test_the_module_is_in_the_wheel_and_nothing_that_terraform_leaves(unpacked: Path) -> None:
    module = unpacked / "spotwright/adapters/terraform/module"
    found = {str(path.relative_to(module)) for path in module.rglob("*") if path.is_file()}

    assert {"main.tf", "examples/minimal/main.tf", "modules/serverless/main.tf"} <= found
    assert {"cloud-init/agent.yaml.tftpl", "user-data.mime.tftpl"} <= found
    assert [name for name in found if ".terraform" in name or "tfstate" in name] == []


def test_an_installed_package_makes_a_fleet_folder(unpacked: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from spotwright.adapters.terraform.fleet_folder import *; "
        "FleetFolder(Path('fleet')).prepare(functions=False)"
    )
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
    )  # fmt: skip

    assert 'source = "./spotwright-module"' in (tmp_path / "fleet/main.tf").read_text()
    theirs = (tmp_path / "fleet/spotwright-module/main.tf").read_bytes()
    assert theirs == (REPOSITORY / "terraform/main.tf").read_bytes()


def test_the_agents_unit_is_in_the_wheel(unpacked: Path) -> None:
    unit = unpacked / "spotwright_agent/systemd/spotwright-agent.service"

    assert unit.read_bytes() == (REPOSITORY / "agent/systemd/spotwright-agent.service").read_bytes()
