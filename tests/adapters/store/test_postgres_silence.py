"""A database that does not answer, without saying that it is gone."""

import time
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import text

from spotwright.adapters.store.database import Database
from spotwright.adapters.store.postgres_connection import TimedConnection
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.errors import StoreUnavailableError
from tests.adapters.store.silent_proxy import SilentProxy
from tests.adapters.store.stored_counts import rolled_up_counts, stored_sequences
from tests.contracts.store_values import new_agent, new_batch
from tests.postgres_server import PostgresServer, postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


def test_a_server_that_falls_silent_is_unavailable_in_time_and_then_works_again(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedConnection, "answer_s", 0.5)
    facts = new_agent()
    with SilentProxy(postgres_server.port) as proxy:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        with closing(open_store(f"{url}?connect_timeout=2")) as store:
            store.commit_batches([new_batch(facts, 1)])
            proxy.swallow()
            start_s = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                store.commit_batches([new_batch(facts, 2)])
            with pytest.raises(StoreUnavailableError):
                store.agents(limit=1)
            assert time.monotonic() - start_s < 10.0
            proxy.swallow(on=False)

            assert store.commit_batches([new_batch(facts, 1), new_batch(facts, 2)])

            assert stored_sequences(store, facts.agent_id) == [1, 2]
            assert rolled_up_counts(store, facts.agent_id) == {10: 2, 60: 2}


def test_a_statement_that_waits_too_long_is_unavailable_and_one_that_changes_tables_is_not(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedConnection, "answer_s", 0.3)
    with closing(Database(postgres_url, busy_timeout_s=5.0)) as database:
        with (
            pytest.raises(StoreUnavailableError, match=r"no answer within 0\.3 s"),
            database.writing() as connection,
        ):
            connection.execute(text("SELECT pg_sleep(30)"))
        with database.changing_tables() as connection:
            connection.execute(text("SELECT pg_sleep(1)"))
        with pytest.raises(StoreUnavailableError), database.reading() as connection:
            connection.execute(text("SELECT pg_sleep(30)"))


def test_every_connection_has_limits_that_the_url_can_change(postgres_url: str) -> None:
    with closing(Database(f"{postgres_url}?keepalives_idle=77", busy_timeout_s=5.0)) as database:
        with database.reading() as connection:
            limit = connection.execute(text("SHOW statement_timeout")).scalar()
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            settings = driver.info.get_parameters()

        assert limit == "15s"
        assert settings["tcp_user_timeout"] == "10000"
        assert settings["keepalives_idle"] == "77"
        with database.changing_tables() as connection:
            assert connection.execute(text("SHOW statement_timeout")).scalar() == "0"
        with database.reading() as connection:
            assert connection.execute(text("SHOW statement_timeout")).scalar() == "15s"
