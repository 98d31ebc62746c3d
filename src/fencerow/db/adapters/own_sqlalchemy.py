"""A transaction of ours on a SQLAlchemy session of the user's: its own connection carries our last statement.

So it is one transaction whatever the driver, and the engine, its pool, its events and its settings are those that the
user's code knows. A session does much by itself: it begins again after a commit, it sends what it kept back, and it
may speak to several databases. `SessionWatch` refuses what would be written beside the transaction, when it begins.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from fencerow.db.adapters.hold import ConnectionHold, interrupt, is_doubtful, unsettled
from fencerow.db.adapters.lent_postgres import sqlstate
from fencerow.db.adapters.session_watch import Refusal, SessionWatch
from fencerow.db.borrow import borrowed, innermost
from fencerow.db.engine import Engine
from fencerow.db.errors import UnusableConnection
from fencerow.db.rollback import rolling_back
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_session import in_one_thread
from fencerow.db.strikes import doorway

T = TypeVar("T")
S = TypeVar("S", Session, AsyncSession)

# By the kind that is wanted: whose it is, what it is called, and what makes it.
WANTED: dict[type[Any], tuple[str, str, str]] = {
    Session: ("a plain def", "a Session", "sessionmaker"),
    AsyncSession: ("an async def", "an AsyncSession", "async_sessionmaker"),
}


class Own:
    """What both kinds have in common: a session, its watch, and what gives its connection up."""

    def __init__(self, given: Any, session: Session, engine: Engine, refusal: Refusal) -> None:
        self.connection = given
        self._session = session
        self._engine = engine
        self._refusal = refusal
        self._borrowed = borrowed(given, engine)
        self._watch: SessionWatch | None = None
        self._hold = ConnectionHold()

    @property
    def is_open(self) -> bool:
        """Whether the transaction is open that was begun here."""
        return self._watch is not None and self._watch.is_open()

    def abandon(self) -> None:
        """End it from any thread: nobody waits for whoever has it."""
        self._hold.give_up()

    def begin(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Begin the transaction. With a `loop`, on a connection that belongs to it."""
        watch = self._watch = SessionWatch(self._session, self._engine, self._refusal)
        self._hold.at_the_end(watch.end)
        driver = watch.driver
        given_up = partial(interrupt, driver) if loop is None else partial(_give_up_in, loop, driver)
        self._hold.take(innermost(self._engine), driver, given_up)

    @property
    def watch(self) -> SessionWatch:
        """Who looks after the transaction, once it has begun."""
        assert self._watch is not None
        return self._watch

    def check_committed(self) -> None:
        """A commit that reached no connection is none: some sessions are made so, for tests."""
        if not self.watch.sent:
            raise self._refusal()

    def unsettled(self, error: Exception) -> Exception:
        """What an error at the commit means: itself, or that nobody here knows what came of it."""
        if not self.watch.sent or not _is_doubtful(error, innermost(self._engine)):
            return error
        return unsettled("the session", error)

    def release(self) -> None:
        """Let go of everything but the session."""
        self._hold.release()


class OwnSession(Own):
    """A transaction on a Session."""

    def run(self, operation: Operation[T]) -> T:
        """Run an operation inside it."""
        with self._hold.waits():
            return self._borrowed.run(operation)

    def flush(self) -> None:
        """Send what the session kept back."""
        self.watch.flush()

    def commit(self) -> None:
        """Commit.

        Raises:
            OutcomeUnknown: it may have happened.
        """
        self.watch.let_commit()
        try:
            with self._hold.waits():
                self._session.commit()
        except Exception as error:
            raise self.unsettled(error) from error
        self.check_committed()


class AsyncOwnSession(Own):
    """A transaction on an AsyncSession."""

    async def arun(self, operation: Operation[T]) -> T:
        """Run an operation inside it."""
        with self._hold.waits():
            return await self._borrowed.arun(operation)

    async def aflush(self) -> None:
        """Send what the session kept back."""
        await self.connection.run_sync(lambda _: self.watch.flush())

    async def commit(self) -> None:
        """`OwnSession.commit`."""
        self.watch.let_commit()
        try:
            with self._hold.waits():
                await self.connection.commit()
        except Exception as error:
            raise self.unsettled(error) from error
        self.check_committed()


@doorway
@contextmanager
def opened(given: object, engine: Engine, refusal: Refusal) -> Iterator[OwnSession]:
    """A transaction on a session: committed at the end of the block, rolled back on an exception.

    A session that was made here is closed; one that was passed in is left to its owner.
    """
    session = _session_of(given, Session)
    own = OwnSession(session, session, engine, refusal)
    below = innermost(engine)
    with below.turn() if isinstance(below, SqliteEngine) else nullcontext():
        try:
            own.begin()
            yield own
            own.commit()
        except BaseException as error:
            with rolling_back(error):
                session.rollback()
            raise
        finally:
            own.release()
            if session is not given:
                session.close()


@asynccontextmanager
async def aopened(given: object, engine: Engine, refusal: Refusal) -> AsyncIterator[AsyncOwnSession]:
    """`opened` on an AsyncSession."""
    session = _session_of(given, AsyncSession)
    own = AsyncOwnSession(session, session.sync_session, engine, refusal)
    below, loop = innermost(engine), asyncio.get_running_loop()
    async with in_one_thread(below.turn()) if isinstance(below, SqliteEngine) else nullcontext():
        try:
            await session.run_sync(lambda _: own.begin(loop))
            yield own
            await own.commit()
        except BaseException as error:
            with rolling_back(error):
                await _to_its_end(session.rollback())
            raise
        finally:
            own.release()
            if session is not given:
                await _to_its_end(session.close())


def _session_of(given: Any, kind: type[S]) -> S:
    """The session that was passed in, or a new one from what makes them.

    Raises:
        UnusableConnection: it is no session of this kind, or one that cannot begin a transaction of its own.
    """
    session = given if isinstance(given, Session | AsyncSession) or not callable(given) else given()
    if not isinstance(session, kind):
        if inspect.iscoroutine(session):
            session.close()
        raise _wrong_kind(given, session, kind)
    _check_unused(session)
    return session


def _check_unused(session: Session | AsyncSession) -> None:
    sync = session.sync_session if isinstance(session, AsyncSession) else session
    if sync.in_transaction():
        raise UnusableConnection(
            "this session is in a transaction already",
            "what was done in it would be committed with the job, or be lost with it",
            "pass a sessionmaker, or a session that has not been used yet",
        )
    if sync.twophase:
        raise UnusableConnection(
            "this session commits in two phases", "an outcome must be one commit", "pass twophase=False"
        )
    bind = sync.bind
    if isinstance(bind, Connection) and bind.in_transaction():
        raise UnusableConnection(
            "this session is bound to a connection in a transaction of somebody else's",
            "its commit would not be one",
            "bind it to an Engine",
        )


def _wrong_kind(given: object, made: object, kind: type[Any]) -> UnusableConnection:
    handler, wanted, maker = WANTED[kind]
    found = (
        type(made).__name__ if made is given else f"{type(given).__name__} that gives {type(made).__name__}"
    )
    return UnusableConnection(
        f"session= got a {found}"[:200],
        f"{handler} handler works with {wanted}",
        f"pass your {maker}, or a session that it has made",
    )


def _is_doubtful(error: Exception, engine: Engine) -> bool:
    """Whether a commit that raised this may have happened: no server said that it refused it."""
    if not isinstance(error, DBAPIError):
        return True  # of somebody's listener, before it or after
    return is_doubtful(cast(Exception, error.orig), sqlstate(error), engine)


def _give_up_in(loop: asyncio.AbstractEventLoop, driver: Any) -> None:
    """An async driver's connection, in the loop that it belongs to."""

    def give_up() -> None:
        if hasattr(driver, "terminate"):  # asyncpg
            driver.terminate()
        else:
            asyncio.ensure_future(driver.interrupt())  # noqa: RUF006 (it only sets a flag)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(give_up)


async def _to_its_end(coroutine: Any) -> None:
    """A connection goes back to its pool although whoever waits for it is cancelled."""
    await asyncio.shield(asyncio.ensure_future(coroutine))
