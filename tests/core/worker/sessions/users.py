"""A user's engine and sessions of each kind on the database of the jobs, and the user's own table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine, event, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from fencerow.core.worker.context import Job
from tests.db.lenders import alchemy_connect_args, alchemy_url, place
from tests.kit.jobs import AnyEngine

SCHEMAS = {"postgres": {"mine": "fencerow"}, "sqlite": {"mine": None}}
MADE = {
    "postgres": "CREATE TABLE fencerow.effect (id integer PRIMARY KEY, name text UNIQUE DEFERRABLE, version integer)",
    "sqlite": "CREATE TABLE effect (id integer PRIMARY KEY, name text UNIQUE, version integer)",
}
READ = {"postgres": "SELECT name FROM fencerow.effect", "sqlite": "SELECT name FROM effect"}

Body = Callable[[Session], object]


class Base(DeclarativeBase):
    pass


class Effect(Base):
    """What a handler leaves."""

    __tablename__ = "effect"
    __table_args__ = {"schema": "mine"}
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[int] = mapped_column()
    __mapper_args__ = {"version_id_col": version}


@dataclass(frozen=True)
class Kind:
    """A dialect of ours, a driver of SQLAlchemy's, and whether it awaits."""

    dialect: str
    driver: str
    awaits: bool

    @property
    def name(self) -> str:
        return f"{self.driver}{'-async' if self.awaits else ''}"


KINDS = [
    Kind("postgres", "postgresql+psycopg", False),
    Kind("postgres", "postgresql+psycopg", True),
    Kind("postgres", "postgresql+psycopg2", False),
    Kind("postgres", "postgresql+asyncpg", True),
    Kind("sqlite", "sqlite", False),
    Kind("sqlite", "sqlite+aiosqlite", True),
]


class Users:
    """What a user has beside Fencerow: an engine, what makes sessions, a table."""

    def __init__(self, kind: Kind, jobs: AnyEngine) -> None:
        self.kind = kind
        self.jobs = jobs
        self.engine: Any = self.connected(place(jobs))
        self.maker = self.sessions(self.engine)
        with jobs.session() as session:
            session.connection.execute(MADE[kind.dialect])

    def connected(self, where: str, **options: Any) -> Any:
        """An engine of this kind."""
        make: Any = create_async_engine if self.kind.awaits else create_engine
        options.setdefault("execution_options", {"schema_translate_map": SCHEMAS[self.kind.dialect]})
        options.setdefault("connect_args", alchemy_connect_args(self.kind.driver, where))
        return make(alchemy_url(self.kind.driver, where), pool_size=2, max_overflow=0, **options)

    def sessions(self, engine: Any, **options: Any) -> Any:
        """What makes sessions on an engine."""
        return (async_sessionmaker if self.kind.awaits else sessionmaker)(engine, **options)

    def names(self) -> list[str]:
        """What is committed."""
        with self.jobs.session() as session:
            rows = session.connection.execute(READ[self.kind.dialect]).fetchall()
        return sorted(row[0] for row in rows)

    def keep(self, *names: str) -> None:
        """Commit effects of the user's own."""
        with self.jobs.session() as session:
            for number, name in enumerate(names, 1):
                table = "fencerow.effect" if self.kind.dialect == "postgres" else "effect"
                session.connection.execute(f"INSERT INTO {table} VALUES ({number}, '{name}', 1)")

    def on_commit(self, call: Callable[..., object]) -> None:
        """Call back at each commit of a session of `maker`."""
        event.listen(
            self.maker.class_.sync_session_class if self.kind.awaits else self.maker, "after_commit", call
        )

    @property
    def checked_out(self) -> int:
        """How many connections of the user's pool are in use."""
        return int(self.engine.pool.checkedout())

    async def close(self) -> None:
        done = self.engine.dispose()
        if inspect.isawaitable(done):
            await done

    def handler(
        self,
        name: str,
        body: Body,
        *,
        given: Callable[[], Any] | None = None,
        after: Callable[[Job], Any] | None = None,
    ) -> Callable[..., Any]:
        """A handler of this kind: the body in the session of its transaction, and then what comes after."""

        def session() -> Any:
            return self.maker if given is None else given()

        async def on_loop(job: Job) -> str:
            async with job.transaction(session=session()) as made:
                assert isinstance(made, AsyncSession)
                await made.run_sync(body)
            if after is not None and inspect.isawaitable(done := after(job)):
                await done
            return name

        def plain(job: Job) -> str:
            with job.transaction(session=session()) as made:
                assert isinstance(made, Session)
                body(made)
            if after is not None:
                after(job)
            return name

        function: Callable[..., Any] = on_loop if self.kind.awaits else plain
        function.__name__ = name
        return function


def adds(number: int, name: str) -> Body:
    """Leaves an effect, when it is flushed."""
    return lambda session: session.add(Effect(id=number, name=name))


def stale(session: Session) -> None:
    """Changes a row that somebody else changes meanwhile, as its version says."""
    found = session.scalars(select(Effect)).one()
    session.connection().exec_driver_sql(
        f"UPDATE {'fencerow.' if session.get_bind().dialect.name == 'postgresql' else ''}effect SET version = 7"
    )
    found.name = "mine"
