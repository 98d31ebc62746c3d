"""A scratch database of each engine, shared by the tests of this folder: each makes its own tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from fencerow.testing.postgres import PostgresServer
from tests.kit.databases import scratch_folder

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def explored_url(server: PostgresServer) -> str:
    """A database whose owner is no superuser and may make tables in one schema."""
    url = server.create_role_and_schema(role="explorer", database="explored", schema="shop")
    with server.connect("explored") as connection:
        connection.execute("ALTER ROLE explorer SET search_path = shop")
    return url


@pytest.fixture
def pg_url(server: PostgresServer, explored_url: str) -> Iterator[str]:
    yield explored_url
    with server.connect("explored") as connection:
        left = connection.execute(
            "SELECT proname FROM pg_proc WHERE proname LIKE 'fencerow%' AND pronamespace = 'shop'::regnamespace"
        ).fetchall()
        assert left == [], "the explorer left its function behind"
        connection.execute("DROP SCHEMA shop CASCADE; CREATE SCHEMA shop AUTHORIZATION explorer")


@pytest.fixture
def lite_url() -> Iterator[str]:
    with scratch_folder() as place:
        yield f"sqlite:///{place / 'shop.db'}"
