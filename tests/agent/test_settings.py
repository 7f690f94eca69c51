"""What an agent is told, and by whom."""

from pathlib import Path
from typing import Any

import pytest

from spotwright_agent.settings import Settings, SettingsError, read_settings


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text('daemon = "file:1"\nzone = "file"\nmarket = "spot"\n')

    found = read_settings(
        flags={"daemon": "flag:3", "zone": None},
        environment={"SPOTWRIGHT_AGENT_DAEMON": "variable:2", "SPOTWRIGHT_AGENT_ZONE": "variable"},
        file=file,
    )

    assert (found.daemon, found.zone, found.market) == ("flag:3", "variable", "spot")


def test_numbers_are_read_from_the_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("spool_max_mib = 64\n")

    found = read_settings(flags={}, environment={"SPOTWRIGHT_AGENT_HINT_S": "90.5"}, file=file)

    assert (found.spool_max_mib, found.hint_s) == (64.0, 90.5)


def test_a_variable_that_is_no_setting_is_named() -> None:
    with pytest.raises(SettingsError, match="SPOTWRIGHT_AGENT_FROB"):
        read_settings(flags={}, environment={"SPOTWRIGHT_AGENT_FROB": "1"}, file=Path("/dev/null"))


def test_variables_of_training_processes_are_left_alone() -> None:
    found = read_settings(
        flags={}, environment={"SPOTWRIGHT_AGENT_SOCKET": "/x", "HOME": "/"}, file=Path("/dev/null")
    )

    assert found == Settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("daemon = 5", "daemon"),
        ("nonsense = 1", "'nonsense'"),
        ('spool_max_mib = "much"', "spool_max_mib"),
        ("spool_max_mib = 0", "spool_max_mib"),
        ("spool_max_days = nan", "spool_max_days"),
        ("spool_keep_free_mib = -1", "spool_keep_free_mib"),
        ("hint_s = inf", "hint_s"),
        ('daemon = "nowhere"', "HOST:PORT"),
        ('daemon = ""', "HOST:PORT"),
        ('daemon = "host:99999"', "HOST:PORT"),
        ('metrics = "9101"', "HOST:PORT"),
        ('cloud = "oracle"', "azure"),
        ('market = "bid"', "on-demand"),
        ('agent_id = "../x"', "agent_id"),
        ('agent_id = "gpu 7"', "agent_id"),
        ('job_signal = "USR1"', "SIGUSR1"),
        ('job_signal = "SIGKILL"', "SIGUSR1"),
        ('job_signal = "SIGSTOP"', "SIGUSR1"),
        ('metadata_url = "ftp://x"', "http://"),
        ("spool_max_mib = true", "spool_max_mib"),
        ("daemon = ", "TOML"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)

    with pytest.raises(SettingsError, match=told):
        read_settings(flags={}, environment={}, file=file)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent.toml cannot be read"):
        read_settings(flags={}, environment={}, file=tmp_path / "absent.toml")


@pytest.mark.parametrize("bytes_", [b"\xff\xfe", b"daemon = '\xff'"])
def test_a_file_that_is_not_text_is_an_error(tmp_path: Path, bytes_: bytes) -> None:
    file = tmp_path / "agent.toml"
    file.write_bytes(bytes_)

    with pytest.raises(SettingsError, match="not TOML"):
        read_settings(flags={}, environment={}, file=file)


def test_the_certificate_is_the_one_of_the_agents_own_name() -> None:
    settings = Settings(agent_id="gpu-7", tls_dir="/tls")

    assert settings.tls_files is not None
    assert settings.tls_files.certificate == Path("/tls/agents/gpu-7.crt")
    assert Settings().tls_files is None


@pytest.mark.parametrize("address", ["[::1]:7443", "10.0.0.1:1", "head.example.org:7443"])
def test_addresses_have_a_host_and_a_port(address: str) -> None:
    flags: dict[str, Any] = {"daemon": address}

    assert read_settings(flags=flags, environment={}, file=Path("/dev/null")).daemon == address
