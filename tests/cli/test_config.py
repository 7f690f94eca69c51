import pwd
from pathlib import Path

import pytest

from spotwright.cli.config import read_config
from spotwright.domain.errors import BadInputError


def _write(home: Path, text: str) -> dict[str, str]:
    file = home / ".config" / "spotwright" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return {"HOME": str(home)}


def test_without_any_setting_the_defaults_of_the_home_folder_hold(tmp_path: Path) -> None:
    config = read_config({"HOME": str(tmp_path)})

    assert config.catalog is None
    assert config.data_dir == tmp_path / ".local" / "share" / "spotwright"


def test_the_file_wins_over_the_default(tmp_path: Path) -> None:
    config = read_config(_write(tmp_path, 'catalog = "/srv/aws.json"\ndata_dir = "/var/lib/x"\n'))

    assert (config.catalog, config.data_dir) == (Path("/srv/aws.json"), Path("/var/lib/x"))


def test_the_environment_wins_over_the_file_setting_by_setting(tmp_path: Path) -> None:
    env = _write(tmp_path, 'catalog = "/srv/aws.json"\ndata_dir = "/var/lib/x"\n')

    config = read_config(env | {"SPOTWRIGHT_DATA_DIR": "/run/x", "SPOTWRIGHT_CATALOG": ""})

    assert (config.catalog, config.data_dir) == (Path("/srv/aws.json"), Path("/run/x"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("~/prices.json", "prices.json"), ("~", "."), ("~/a/../b", "a/../b")],
)
def test_a_tilde_is_the_home_folder_in_the_file_and_in_the_environment(
    tmp_path: Path, written: str, expected: str
) -> None:
    env = _write(tmp_path, f'catalog = "{written}"\n')

    config = read_config(env | {"SPOTWRIGHT_DATA_DIR": written})

    assert config.catalog == config.data_dir == tmp_path / expected


def test_the_tilde_of_somebody_else_is_their_home(tmp_path: Path) -> None:
    config = read_config(_write(tmp_path, 'catalog = "~root/aws.json"\ndata_dir = "~nobodyhere"\n'))

    assert config.catalog == Path(pwd.getpwnam("root").pw_dir) / "aws.json"
    assert config.data_dir == Path("~nobodyhere")


def test_the_xdg_folders_are_honoured(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_DATA_HOME": str(tmp_path / "d")}
    (tmp_path / "c" / "spotwright").mkdir(parents=True)
    (tmp_path / "c" / "spotwright" / "config.toml").write_text('catalog = "/srv/aws.json"')

    config = read_config(env)

    assert config.catalog == Path("/srv/aws.json")
    assert config.data_dir == tmp_path / "d" / "spotwright"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('catalogue = "/srv/aws.json"', "'catalogue' is not a text setting; known: catalog"),
        ("catalog = 3", "'catalog' is not a text setting"),
        ("catalog = ", "config.toml: Invalid value"),
        ('zzz = "a"', "known: catalog, data_dir"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_config(_write(tmp_path, text))

    assert complaint in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_daemon_its_certificates_and_a_token_are_settings_too(tmp_path: Path) -> None:
    text = 'daemon = "plans:7443"\ntls_dir = "~/tls"\ntoken = "from-the-file"\n'

    config = read_config(_write(tmp_path, text) | {"SPOTWRIGHT_TOKEN": "secret-word"})

    assert (config.daemon, config.tls_dir) == ("plans:7443", tmp_path / "tls")
    assert config.token == "secret-word"
    assert "secret-word" not in repr(config)
