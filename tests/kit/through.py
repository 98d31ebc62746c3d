"""`--through pgbouncer`: the tests' own databases are reached through a pooler in transaction mode.

Only LISTEN goes to the server, as FENCEROW_LISTEN_URL makes it do in production. A missing pooler fails; nothing is
skipped. Tests that bring a server of their own are not played: no pooler stands before it, so they would be the same.
So would be those that ask for a SQLite file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer

POOLERS = ("pgbouncer",)
POOLED = {"pooler", "fronted"}
OWN_SERVERS = {"tcp_server", "own_server", "pair"}
# A test on both engines asks for its engine in turn; then only its parameter tells which it has.
SERVED = {"server", "engine", "lent_engine", "users"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--through", choices=POOLERS, help="reach PostgreSQL through this pooler")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--through") is None:
        return
    without = [item for item in items if not may_be_pooled(item)]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if may_be_pooled(item)]


def may_be_pooled(item: pytest.Item) -> bool:
    """Whether a pooler can stand before the server of this test."""
    asked = set(item.fixturenames) if isinstance(item, pytest.Function) else set()
    has_only_a_file = "sqlite_path" in asked and not asked & SERVED
    return bool(asked & POOLED) or not (asked & OWN_SERVERS or has_only_a_file)


@pytest.fixture(scope="session")
def pooler(server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[PgBouncer | None]:
    """The pooler before this pytest process' server, if one was asked for."""
    if request.config.getoption("--through") is None:
        yield None
        return
    with PgBouncer(server) as running, _listening_directly(running):
        yield running


@pytest.fixture
def fronted(request: pytest.FixtureRequest) -> Iterator[Callable[[PostgresServer, str], str]]:
    """The URL by which a server of the test's own is reached: through a pooler too, if one was asked for."""
    with ExitStack() as stack:

        def reach(server: PostgresServer, url: str) -> str:
            if request.config.getoption("--through") is None:
                return url
            made = stack.enter_context(PgBouncer(server))
            stack.enter_context(_listening_directly(made))
            return made.pooled(url)

        yield reach


@contextmanager
def _listening_directly(pooler: PgBouncer) -> Iterator[None]:
    """Give every engine of a pooled database the listen URL that an operator would set."""
    original = PostgresEngine.listen

    def listen(
        engine: PostgresEngine, callback: Callable[[str | None], None], **options: Any
    ) -> Callable[[], None]:
        engine._listen_conninfo = pooler.direct(engine._listen_conninfo)
        return original(engine, callback, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresEngine, "listen", listen)
        yield
