import os
import subprocess
from pathlib import Path

import pytest

from spotwright.adapters.terraform.environment import terraform_environment
from tests.outside_tools import require_tool


def mirror(folder: Path) -> Path:
    (folder / "registry.terraform.io/hashicorp/aws").mkdir(parents=True)
    return folder


def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": os.defpath}


def test_a_mirror_in_tf_plugin_dir_is_named_in_a_configuration(tmp_path: Path) -> None:
    config = tmp_path / "terraform.rc"
    given = home(tmp_path) | {"TF_PLUGIN_DIR": str(mirror(tmp_path / "mirror"))}

    found = terraform_environment(given, config_file=config, places=[])

    assert found["TF_CLI_CONFIG_FILE"] == str(config)
    assert f'path    = "{tmp_path}/mirror"' in config.read_text(encoding="utf-8")


@pytest.mark.parametrize("below", ["", "plugins", "terraform/plugins"])
def test_a_mirror_below_a_system_prefix_is_found(tmp_path: Path, below: str) -> None:
    mirror(tmp_path / "opt" / below)
    config = tmp_path / "terraform.rc"

    terraform_environment(home(tmp_path), config_file=config, places=[str(tmp_path / "opt")])

    assert f'"{Path(tmp_path / "opt" / below)}"' in config.read_text(encoding="utf-8")


@pytest.mark.parametrize("implied", [".terraform.d/plugins", ".local/share/terraform/plugins"])
def test_folders_that_terraform_knows_need_no_configuration(tmp_path: Path, implied: str) -> None:
    given = home(tmp_path)
    mirror(tmp_path / "home" / implied)
    mirror(tmp_path / "opt")

    found = terraform_environment(
        given, config_file=tmp_path / "rc", places=[str(tmp_path / "opt")]
    )

    assert "TF_CLI_CONFIG_FILE" not in found


def test_a_configuration_that_is_not_there_is_dropped(tmp_path: Path) -> None:
    given = home(tmp_path) | {"TF_CLI_CONFIG_FILE": str(tmp_path / "absent")}

    found = terraform_environment(given, config_file=tmp_path / "rc", places=[])

    assert "TF_CLI_CONFIG_FILE" not in found


@pytest.mark.parametrize("where", ["home/.terraformrc", "own.rc"])
def test_a_configuration_of_the_users_own_is_left_alone(tmp_path: Path, where: str) -> None:
    given = home(tmp_path) | {"TF_PLUGIN_DIR": str(mirror(tmp_path / "mirror"))}
    (tmp_path / where).write_text("# mine\n", encoding="utf-8")
    if where == "own.rc":
        given["TF_CLI_CONFIG_FILE"] = str(tmp_path / where)

    found = terraform_environment(given, config_file=tmp_path / "rc", places=[])

    assert found.get("TF_CLI_CONFIG_FILE") == given.get("TF_CLI_CONFIG_FILE")
    assert not (tmp_path / "rc").exists()


def test_a_plugin_dir_without_the_provider_falls_through_to_the_registry(tmp_path: Path) -> None:
    given = home(tmp_path) | {"TF_PLUGIN_DIR": str(tmp_path)}

    found = terraform_environment(given, config_file=tmp_path / "rc", places=[])

    assert "TF_CLI_CONFIG_FILE" not in found


def test_a_mirror_and_a_configuration_named_from_here_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(tmp_path / "mirror")
    (tmp_path / "own.rc").touch()
    monkeypatch.chdir(tmp_path)
    config, given = tmp_path / "rc", home(tmp_path)

    terraform_environment(given | {"TF_PLUGIN_DIR": "mirror"}, config_file=config, places=[])
    own = terraform_environment(
        given | {"TF_CLI_CONFIG_FILE": "own.rc"}, config_file=config, places=[]
    )

    assert f'path    = "{tmp_path}/mirror"' in config.read_text(encoding="utf-8")
    assert own["TF_CLI_CONFIG_FILE"] == str(tmp_path / "own.rc")


def test_a_mirror_is_asked_for_the_providers_that_it_holds_and_no_others(tmp_path: Path) -> None:
    found = mirror(tmp_path / "mirror")
    (found / "registry.terraform.io/acme/rocket").mkdir(parents=True)
    (found / "registry.terraform.io/hashicorp/index.json").touch()
    config = tmp_path / "rc"

    terraform_environment(
        home(tmp_path) | {"TF_PLUGIN_DIR": str(found)}, config_file=config, places=[]
    )

    held = '["registry.terraform.io/acme/rocket", "registry.terraform.io/hashicorp/aws"]'
    text = config.read_text(encoding="utf-8")
    assert f"include = {held}\n" in text
    assert f"exclude = {held}\n" in text


def test_terraform_reads_the_configuration_that_names_a_folder_with_quotes(tmp_path: Path) -> None:
    require_tool("terraform")
    given = home(tmp_path) | {"TF_PLUGIN_DIR": str(mirror(tmp_path / 'a "mirror" ${b}'))}
    given["PATH"] = os.environ["PATH"]
    found = terraform_environment(given, config_file=tmp_path / "rc", places=[])

    told = subprocess.run(
        ["terraform", "version"], env=found, capture_output=True, text=True, check=False
    )

    assert (told.returncode, told.stderr) == (0, "")
