import subprocess
import sys
from pathlib import Path

import pytest

from spotwright.client import Client
from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, DaemonUnavailableError
from spotwright.domain.questions import JobDocument

JOB = JobDocument(text="name: x")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7443", "127.0.0.1", 7443),
        ("plans.example.org:1", "plans.example.org", 1),
        ("[::1]:65535", "::1", 65535),
    ],
)
def test_an_address_is_read_as_it_is_printed(text: str, host: str, port: int) -> None:
    address = Address.parse(text)

    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", ":", "host", "host:", ":7443", "host:x", "host:0", "host:65536", "::1:7443", "[host]:1",
     "host:-1", "host:٣"],
)  # fmt: skip
def test_what_is_no_address_is_bad_input(text: str) -> None:
    with pytest.raises(BadInputError, match=r"is no address|a port is"):
        Client(text)


@pytest.mark.parametrize(
    ("host", "stays"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
    ],
)
def test_only_what_stays_on_this_machine_is_loopback(host: str, stays: bool) -> None:
    assert Address(host, 1).is_loopback is stays


def test_nothing_is_sent_in_the_clear_to_another_machine() -> None:
    with pytest.raises(BadInputError, match="is another machine, which is reached by TLS only"):
        Client("plans.example.org:7443")


def test_a_token_is_never_sent_in_the_clear() -> None:
    with pytest.raises(BadInputError, match="a token is sent over TLS only") as refused:
        Client("127.0.0.1:7443", token="secret-word")

    assert "secret-word" not in str(refused.value)


def test_a_folder_without_certificates_says_what_belongs_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"ca\.crt .No such file.*client\.crt"):
        Client("127.0.0.1:7443", tls_dir=tmp_path)


def test_where_nobody_listens_the_error_says_where_and_what_to_do() -> None:
    with (
        Client("127.0.0.1:1") as client,
        pytest.raises(DaemonUnavailableError, match=r"no daemon answers at 127\.0\.0\.1:1 "),
    ):
        client.predict(JOB, "g5.xlarge")


def test_the_clients_need_the_base_install_only() -> None:
    heavy = "{'numpy', 'scipy', 'ortools', 'pydantic', 'yaml', 'typer', 'rich', 'sqlalchemy'}"
    program = f"import sys, spotwright.client; print({heavy} & set(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "set()\n"
