"""A PostgreSQL cluster of our own on loopback, from the programs on the PATH.

A test that needs one imports the fixtures `postgres_server` and `postgres_url` by name.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.outside_tools import require_tool
from tests.ports import stable_port

_USER = "spotwright"
_OTHER_USERS = ("postgres", "nobody")  # PostgreSQL refuses to run as root


class PostgresServer:
    """One cluster in a folder that goes away with it; fsync is on."""

    def __init__(self) -> None:
        self._initdb, self._pg_ctl = require_tool("initdb"), require_tool("pg_ctl")
        require_tool("postgres")
        self._as_user = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="spotwright-postgres-"))
        self._data = self._folder / "data"
        self.port = stable_port()
        if self._as_user:
            shutil.chown(self._folder, self._as_user[2].split("=")[1])
        self._run(
            self._initdb, "-D", self._data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-locale"
        )

    def start(self) -> None:
        """Start, and return when it answers."""
        options = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c fsync=on "
            f"-c unix_socket_directories={self._folder} -c shared_buffers=32MB"
        )
        log = self._folder / "log"
        self._run(self._pg_ctl, "-D", self._data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """End in good order; open connections are cut."""
        self._run(self._pg_ctl, "-D", self._data, "-w", "-m", "fast", "stop")

    def kill(self) -> None:
        """End at once, as in a crash: the next start has to recover."""
        self._run(self._pg_ctl, "-D", self._data, "-w", "-m", "immediate", "stop")

    def remove(self) -> None:
        """End it if it runs, and delete everything."""
        if (self._data / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self._folder)

    def url(self, database: str) -> str:
        """Return the URL of a database, which is made if it is new."""
        admin = f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"
        with closing(psycopg.connect(admin, autocommit=True)) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
            if found.fetchone() is None:
                connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def _run(self, *command: str | Path) -> None:
        # The server outlives pg_ctl: it must not hold a pipe that we read to its end.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [*self._as_user, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode(errors="replace")


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = next(name for name in _OTHER_USERS if name in names)
    return [str(require_tool("setpriv")), "--clear-groups", f"--reuid={user}", "--"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that runs."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a new database."""
    return postgres_server.url(f"test_{uuid4().hex}")
