"""What whole systems need."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from fencerow.testing.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of the test's own, on each engine in turn, where tables may be made."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('migrated_path')}"
    found = str(request.getfixturevalue("postgres_url"))
    server: PostgresServer = request.getfixturevalue("server")
    with server.connect(urlsplit(found).path[1:]) as connection:
        # The systems have tables of their own beside ours.
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    return found
