from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import create_engine, text

from tests.postgres_server import for_sqlalchemy, fresh_database


def test_each_test_gets_an_empty_database_of_its_own(postgres_server: str, postgres_url: str) -> None:
    with (
        fresh_database(postgres_server) as other,
        psycopg.connect(postgres_url) as here,
        psycopg.connect(other) as there,
    ):
        here.execute("CREATE TABLE seen (id bigint)")
        here.commit()
        assert there.execute("SELECT to_regclass('seen')").fetchone() == (None,)


def test_a_database_is_gone_after_its_test_whoever_is_still_connected(postgres_server: str) -> None:
    with fresh_database(postgres_server) as url:
        left = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()


def test_the_url_serves_sqlalchemy_too(postgres_url: str) -> None:
    engine = create_engine(for_sqlalchemy(postgres_url))
    with engine.connect() as connection:
        assert int(connection.execute(text("SHOW server_version_num")).scalar_one()) >= 150_000
    engine.dispose()
