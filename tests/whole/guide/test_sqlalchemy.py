"""docs/guide/sqlalchemy.md runs as it stands on both databases: its blocks one after the other, in one program."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, event, func, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from fencerow import App, Job
from fencerow.core.schema.migrate import ledger, ledger_name
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.events import Event, apublish, consumer
from fencerow.guards.mutex import Mutex
from fencerow.guards.once import once
from fencerow.guards.replace import replace_for
from fencerow.guards.transitions import Move, Transitions
from fencerow.testing import adrain, assert_submitted, submitted
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE
from tests.db.lenders import alchemy_connect_args, alchemy_url
from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "guide" / "sqlalchemy.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
MAKER, SUBMIT, PAY, CONSUME, ROLLED_BACK, GUARDS, REVISION, ENV = BLOCKS
ENVIRONMENT = """
from alembic import context
from sqlalchemy import NullPool, create_engine
from tests.whole.guide.test_sqlalchemy import Base

with create_engine("sqlite:///{place}", poolclass=NullPool).connect() as connection:
{block}
    with context.begin_transaction():
        context.run_migrations()
"""


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(default="new")
    paid: Mapped[bool] = mapped_column(default=False)
    points: Mapped[int] = mapped_column(default=0)


class Reservation(Base):
    __tablename__ = "reservation"
    id: Mapped[int] = mapped_column(primary_key=True)
    order: Mapped[int]


class Page(Base):
    __tablename__ = "page"
    number: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str]


async def played(block: str, names: dict[str, Any]) -> None:
    """Run a block as the page has it, with what the test and earlier blocks have named."""
    code = compile(block, "sqlalchemy.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if inspect.iscoroutine(running := eval(code, names)):  # noqa: S307 - our own page
        await running


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, server: PostgresServer) -> str:
    """A migrated database, in which the user may make tables."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('migrated_path')}"
    found = str(request.getfixturevalue("postgres_url"))
    with server.connect(str(conninfo_to_dict(found)["dbname"])) as connection:
        connection.execute(f"CREATE SCHEMA {ROLE} AUTHORIZATION {ROLE}".encode())
    return found


@pytest.fixture
async def names(url: str) -> AsyncIterator[dict[str, Any]]:
    """What the page takes for granted, and its own `make_session`, on an engine for this database."""
    driver = "sqlite+aiosqlite" if url.startswith("sqlite") else "postgresql+asyncpg"
    where = alchemy_url(driver, url.removeprefix("sqlite:///"))
    engine = create_async_engine(where, connect_args=alchemy_connect_args(driver, url))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with App(url) as app:
        known: dict[str, Any] = {
            **{each.__name__: each for each in (Job, Event, Order, Reservation, Mutex)},
            **{each.__name__: each for each in (apublish, consumer, once, replace_for, async_sessionmaker)},
            "app": app,
            "create_async_engine": lambda _url: engine,
        }
        await played(MAKER, known)
        yield known
    await engine.dispose()


async def test_submit_pay_and_consume(names: dict[str, Any]) -> None:
    app: App = names["app"]
    ran: list[tuple[str, int]] = []

    @app.job
    async def ship(order_id: int) -> None:
        ran.append(("ship", order_id))

    @app.job
    async def mail(order_id: int) -> None:
        ran.append(("mail", order_id))

    names |= {"ship": ship, "mail": mail, "order": Order(id=7)}
    await played(SUBMIT, names)
    await played(PAY, names)
    await played(CONSUME, names)
    await adrain(app, check=True)  # from now on the group reads
    await names["pay"].asubmit(7)
    await apublish(app, "order.paid", {"id": 7}, key="7")
    await adrain(app, check=True)

    async with names["make_session"]() as session:
        order, reserved = await session.get_one(Order, 7), await session.get_one(Reservation, 1)
    assert (order.paid, reserved.order) == (True, 7)
    assert sorted(ran) == [("mail", 7), ("ship", 7)]


async def test_guards_in_the_users_session(names: dict[str, Any]) -> None:
    app: App = names["app"]

    async def add_points(session: Any) -> None:
        (await session.get_one(Order, 7)).points += 5

    pay = Move("pay", "new", "paid")
    names |= {
        "orders": Transitions(app, table="orders", column="state", states=["new", "paid"], moves=[pay]),
        "add_points": add_points,
        "order_id": 7,
        "url": "faq",
        "rows": [{"number": 1}, {"number": 2}],
        "sku": "shelf",
    }
    async with names["make_session"].begin() as session:
        session.add(Order(id=7))

    await played(GUARDS, names)

    assert names["order"]["state"] == "paid"
    async with names["make_session"]() as session:
        assert (await session.get_one(Order, 7)).points == 5
        assert (await session.get_one(Page, 2)).source == "faq"


def test_a_rollback_after_each_test_takes_jobs_and_commits_back_on_sqlite(migrated_path: Path) -> None:
    with App(f"sqlite:///{migrated_path}") as app:

        @app.job
        def ship(order_id: int) -> None:
            """Never run here."""

        known: dict[str, Any] = {
            **{each.__name__: each for each in (Order, Session, assert_submitted, create_engine)},
            "app": app,
            "ship": ship,
            "event": event,
            "pytest": SimpleNamespace(fixture=contextmanager),
        }
        exec(ROLLED_BACK.replace("sqlite:///test.db", f"sqlite:///{migrated_path}"), known)  # noqa: S102 (our own page)
        Base.metadata.create_all(known["engine"])
        for _ in range(2):  # the second begins as the first did
            with known["session"]() as session:
                known["test_an_order_is_to_be_shipped"](session)

        with known["engine"].connect() as connection:
            assert connection.scalar(select(func.count()).select_from(Order)) == 0
        assert submitted(app) == []
        known["engine"].dispose()


def test_a_revision_and_an_environment_of_alembic(sqlite_path: Path, tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "r1.py").write_text(f"revision, down_revision = 'r1', None\n{REVISION}")
    (tmp_path / "env.py").write_text(ENVIRONMENT.format(place=sqlite_path, block=indent(ENV, "    ")))
    config = Config()
    config.set_main_option("script_location", str(tmp_path))

    command.upgrade(config, "head")

    engine = SqliteEngine(sqlite_path, store.sqlite_queries())
    assert [each.version for each in engine.run(ledger(ledger_name(engine)))] == list(range(1, 9))
    engine.close()
