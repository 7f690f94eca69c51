"""`spotwright-agent install` into an image: real files, owners and systemd's own tools."""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from spotwright_agent.install import (
    InstallError,
    InstallPlan,
    add_install_command,
    install,
    systemd_folder,
)
from spotwright_agent.settings import SettingsError, read_settings
from tests.cli.command import SPOTWRIGHT
from tests.outside_tools import require, require_tool

REPOSITORY = Path(__file__).parents[2]
AGENT = Path(sys.executable).with_name("spotwright-agent")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    require(os.geteuid() == 0, "only root may give files away")
    for tool in ("systemd-sysusers", "systemctl"):
        require_tool(tool)
    (tmp_path / "image").mkdir()
    return tmp_path / "image"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs") / "tls"
    for words in (["init", "--host", "localhost"], ["issue", "agent", "gpu-7"]):
        command = [str(SPOTWRIGHT), "certs", words[0], "--dir", str(folder), *words[1:]]
        subprocess.run(command, check=True, capture_output=True)
    return folder


def group_of(image: Path) -> int:
    line = next(
        line for line in (image / "etc/group").read_text().splitlines() if "spotwright" in line
    )
    return int(line.split(":")[2])


def files_of(image: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(image)): (path.stat().st_ino, path.stat().st_mode, path.read_bytes())
        for path in image.rglob("*")
        if path.is_file()
    }


def test_the_service_and_all_that_it_needs_is_there(image: Path, certificates: Path) -> None:
    told = {"daemon": "gpu-head:7443", "agent_id": "gpu-7", "job_id": "j-1"}

    list(install(InstallPlan(root=image, settings=told, tls_from=certificates)))

    unit = (image / "etc/systemd/system/spotwright-agent.service").read_text()
    assert f"ExecStart={AGENT} run\n" in unit
    wanted = image / "etc/systemd/system/multi-user.target.wants/spotwright-agent.service"
    assert wanted.is_symlink()
    settings = read_settings(flags={}, environment={}, file=image / "etc/spotwright/agent.toml")
    assert (settings.daemon, settings.agent_id, settings.job_id) == tuple(told.values())
    assert settings.tls_files is not None
    key = image / settings.tls_files.key.relative_to("/")
    assert key.read_bytes() == (certificates / "agents/gpu-7.key").read_bytes()
    assert not (image / "etc/systemd/system/spotwright-agent.service.d").exists()


def test_only_root_and_the_agent_can_read_the_key(image: Path, certificates: Path) -> None:
    plan = InstallPlan(root=image, settings={"agent_id": "gpu-7"}, tls_from=certificates)

    list(install(plan))

    folder = image / "etc/spotwright/agent-tls"
    for path in (folder, folder / "agents"):
        now = path.stat()
        assert (now.st_mode & 0o777, now.st_uid, now.st_gid) == (0o750, 0, group_of(image))
    for name in ("ca.crt", "agents/gpu-7.crt", "agents/gpu-7.key"):
        now = (folder / name).stat()
        assert (now.st_mode & 0o777, now.st_uid, now.st_gid) == (0o640, 0, group_of(image))
    assert not (folder / "ca.key").exists()
    assert (image / "etc/spotwright").stat().st_mode & 0o777 == 0o755


def test_a_strict_umask_does_not_shut_the_agent_out(image: Path) -> None:
    before = os.umask(0o077)
    try:
        list(install(InstallPlan(root=image, signal_training=True)))
    finally:
        os.umask(before)

    for path in ("etc", "etc/spotwright", "etc/systemd/system/spotwright-agent.service.d"):
        assert (image / path).stat().st_mode & 0o777 == 0o755
    assert (image / "etc/spotwright/agent.toml").stat().st_mode & 0o777 == 0o644


def test_to_install_again_changes_nothing(image: Path, certificates: Path) -> None:
    plan = InstallPlan(root=image, settings={"agent_id": "gpu-7"}, tls_from=certificates)
    list(install(plan))
    before = files_of(image)

    told = list(install(plan))

    assert files_of(image) == before  # not even written anew
    assert [line for line in told if line.startswith("wrote")] == []


def test_settings_that_are_there_are_kept_unless_forced(image: Path) -> None:
    file = image / "etc/spotwright/agent.toml"
    list(install(InstallPlan(root=image, settings={"daemon": "first:1"})))

    told = list(install(InstallPlan(root=image, settings={"daemon": "second:2"})))
    kept = tomllib.loads(file.read_text())
    list(install(InstallPlan(root=image, settings={"daemon": "second:2"}, force=True)))

    assert kept["daemon"] == "first:1"
    assert any(line.startswith("kept") and "--force" in line for line in told)
    assert tomllib.loads(file.read_text())["daemon"] == "second:2"


def test_signals_to_training_come_only_when_asked_for(image: Path) -> None:
    list(install(InstallPlan(root=image, signal_training=True)))

    drop_in = image / "etc/systemd/system/spotwright-agent.service.d/signal-training.conf"
    assert "AmbientCapabilities=CAP_KILL" in drop_in.read_text()
    told = tomllib.loads((image / "etc/spotwright/agent.toml").read_text())
    assert told["job_signal"] == "SIGUSR1"


@pytest.mark.parametrize("value", ['a"b', "a\nb = 1", "\\", "'''", "\x7f", "é\U0001f600", "\x01"])
def test_settings_come_back_as_they_were_given(image: Path, value: str) -> None:
    list(install(InstallPlan(root=image, settings={"job_id": value})))

    file = image / "etc/spotwright/agent.toml"
    assert read_settings(flags={}, environment={}, file=file).job_id == value


def test_a_dry_run_tells_everything_and_changes_nothing(image: Path, certificates: Path) -> None:
    plan = InstallPlan(root=image, settings={"agent_id": "gpu-7"}, tls_from=certificates)

    told = list(install(replace(plan, dry_run=True)))

    assert list(image.iterdir()) == []
    done = [line.split()[-1] for line in install(plan) if line.startswith("wrote")]
    assert [line.split()[-1] for line in told if line.startswith("would write")] == done


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"daemon": "nowhere"}, "HOST:PORT"), ({"job_id": "\udcff"}, "is not text")],
)
def test_bad_settings_are_refused(image: Path, settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        list(install(InstallPlan(root=image, settings=settings)))
    assert not (image / "etc/spotwright/agent.toml").exists()


def test_an_installed_file_that_is_not_toml_is_told_and_left(image: Path) -> None:
    file = image / "etc/spotwright/agent.toml"
    file.parent.mkdir(parents=True)
    file.write_text("daemon = what")

    with pytest.raises(SettingsError, match="is not TOML"):
        list(install(InstallPlan(root=image)))
    assert file.read_text() == "daemon = what"
    assert not (image / "etc/systemd").exists()


def test_a_key_of_another_certificate_is_refused_before_anything_is_written(
    image: Path, certificates: Path, tmp_path: Path
) -> None:
    mixed = tmp_path / "tls"
    (mixed / "agents").mkdir(parents=True)
    (mixed / "ca.crt").write_bytes((certificates / "ca.crt").read_bytes())
    (mixed / "agents/gpu-7.crt").write_bytes((certificates / "agents/gpu-7.crt").read_bytes())
    (mixed / "agents/gpu-7.key").write_bytes((certificates / "server.key").read_bytes())

    with pytest.raises(InstallError, match=r"gpu-7\.crt and its key"):
        list(install(InstallPlan(root=image, settings={"agent_id": "gpu-7"}, tls_from=mixed)))
    assert list(image.iterdir()) == []


@pytest.mark.parametrize(
    ("agent_id", "error"), [("gpu-8", InstallError), ("../gpu-7", SettingsError)]
)
def test_a_certificate_that_is_not_there_is_named(
    image: Path, certificates: Path, agent_id: str, error: type[Exception]
) -> None:
    plan = InstallPlan(root=image, settings={"agent_id": agent_id}, tls_from=certificates)

    with pytest.raises(error, match=agent_id):
        list(install(plan))
    assert list(image.iterdir()) == []


def test_a_file_that_cannot_be_finished_leaves_the_old_one(image: Path) -> None:
    list(install(InstallPlan(root=image)))
    before = files_of(image)
    blocked = image / "etc/systemd/system" / f".spotwright-agent.service.{os.getpid()}"
    blocked.mkdir()  # in the way of the new file

    with pytest.raises(OSError, match="directory"):
        list(install(InstallPlan(root=image, program=str(SPOTWRIGHT))))
    blocked.rmdir()
    assert files_of(image) == before


@pytest.mark.parametrize(
    ("program", "complaint"),
    [("/nowhere/spotwright-agent", "is not there"), ("odd name/agent", "misread")],
)
def test_a_program_that_the_unit_could_not_start_is_refused(
    image: Path, tmp_path: Path, program: str, complaint: str
) -> None:
    path = tmp_path / program
    if complaint == "misread":
        path.parent.mkdir()
        path.touch()
    with pytest.raises(InstallError, match=complaint):
        list(install(InstallPlan(root=image, program=str(path))))


def test_a_program_inside_the_image_is_called_as_the_image_sees_it(image: Path) -> None:
    program = image / "opt/spotwright/bin/spotwright-agent"
    program.parent.mkdir(parents=True)
    program.touch()

    list(install(InstallPlan(root=image, program=str(program))))

    unit = (image / "etc/systemd/system/spotwright-agent.service").read_text()
    assert "ExecStart=/opt/spotwright/bin/spotwright-agent run\n" in unit


def test_the_command_prints_each_step_and_each_error(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_install_command(parser.add_subparsers())

    good = parser.parse_args(["install", "--root", str(image), "--daemon", "d:1", "--job-id", "j"])
    assert good.act(good) == 0
    told = capsys.readouterr()
    assert f"wrote {image}/etc/spotwright/agent.toml" in told.out.splitlines()
    bad = parser.parse_args(["install", "--root", str(image / "none")])
    assert bad.act(bad) == 1
    assert "none is not a folder" in capsys.readouterr().err


def test_a_host_without_systemd_is_told_what_to_do_instead() -> None:
    require(not Path("/run/systemd/system").exists(), "systemd runs here")

    with pytest.raises(InstallError, match=r"systemd|hidden"):
        list(install(InstallPlan()))


def test_the_unit_of_a_checkout_is_found_and_goes_into_the_wheel() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert systemd_folder() == REPOSITORY / "agent" / "systemd"
    # Installed, the package looks beside its own modules.
    assert wheel["force-include"] == {"agent/systemd": "spotwright_agent/systemd"}
    assert {path.name for path in systemd_folder().iterdir()} == {
        "spotwright-agent.service",
        "signal-training.conf",
        "sysusers.conf",
        "tmpfiles.conf",
    }


def test_an_installed_package_finds_the_unit_within_itself(tmp_path: Path) -> None:
    package = tmp_path / "spotwright_agent"
    package.mkdir()
    for name in ("__init__", "install", "settings", "tls_files"):
        shutil.copy(REPOSITORY / "agent/spotwright_agent" / f"{name}.py", package)
    shutil.copytree(REPOSITORY / "agent/systemd", package / "systemd")  # as the wheel has it
    code = "from spotwright_agent.install import systemd_folder; print(systemd_folder())"

    found = subprocess.check_output(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, text=True
    )

    assert Path(found.strip()) == package / "systemd"
