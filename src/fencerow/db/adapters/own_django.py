"""A transaction of ours on Django's connection: an `atomic()` block whose commit carries our last statement.

So what a handler does with models, in the thread that has it, is in the transaction, with Django's savepoints, routers
and `on_commit`. Django itself refuses a commit inside `atomic()`. What it does silently is refused here: it rolls back
at the end of a block in which an inner one failed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from django.db import Error, connections, transaction
from django.utils.connection import ConnectionProxy

from fencerow.db.adapters.hold import ConnectionHold, interrupt, is_doubtful, unsettled
from fencerow.db.borrow import Borrowed, borrowed, innermost
from fencerow.db.engine import Engine
from fencerow.db.errors import UnusableConnection
from fencerow.db.rollback import rolling_back
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_file import fault
from fencerow.db.strikes import doorway

T = TypeVar("T")

IDLE = 0  # of libpq's transaction status: none is open
AT_ONCE = ("IMMEDIATE", "EXCLUSIVE")  # modes of SQLite's BEGIN that take the file's write lock

log = logging.getLogger("fencerow.db")


class OwnDjango:
    """The transaction that is open on Django's connection."""

    def __init__(self, given: Any, wrapper: Any, engine: Engine, turn: ExitStack) -> None:
        self.connection = given
        self._wrapper = wrapper
        self._engine = innermost(engine)
        self._turn = turn
        self._block: Any = transaction.atomic(using=wrapper.alias, durable=True)
        self._hold = ConnectionHold()
        self._committed = False
        self._borrowed = self._begun(engine)

    @property
    def is_open(self) -> bool:
        """Whether the block is open that was begun here, at the driver too."""
        blocks, driver = self._wrapper.atomic_blocks, self._wrapper.connection
        if not blocks or blocks[0] is not self._block or driver is None:
            return False
        if isinstance(self._engine, SqliteEngine):
            return bool(driver.in_transaction)
        return not driver.closed and driver.info.transaction_status != IDLE

    def run(self, operation: Operation[T]) -> T:
        """Run an operation inside it."""
        with self._hold.waits():
            return self._borrowed.run(operation)

    def flush(self) -> None:
        """Django keeps nothing back; but a block in which an inner one failed would be rolled back in silence.

        Raises:
            UnusableConnection: it must be rolled back.
        """
        if self._wrapper.needs_rollback:
            raise UnusableConnection(
                "the transaction must be rolled back: an atomic() block inside it failed, or set_rollback() was called",
                "its effects and the job's success are one commit",
                "catch the error around an atomic() block with a savepoint, or let it pass",
            )

    def abandon(self) -> None:
        """End it from any thread: nobody waits for whoever has it."""
        self._hold.give_up()

    def commit(self) -> None:
        """Commit, and let Django call what waits for it.

        Raises:
            OutcomeUnknown: it may have happened.
        """
        try:
            with self._hold.waits():
                self._leave(None)
        except Exception as error:
            if not self._committed:
                raise self._unsettled(error) from error
            log.exception("a function of on_commit failed after the commit")

    def roll_back(self, error: BaseException) -> None:
        """Undo everything."""
        with rolling_back(error):
            self._leave(error)

    def release(self) -> None:
        """Let go of everything. Django's connection is closed if it is old, as at the end of a request."""
        self._hold.release()
        self._wrapper.close_if_unusable_or_obsolete()

    def _begun(self, engine: Engine) -> Borrowed:
        try:
            self._block.__enter__()
        except Exception as error:
            raise self._known(error) from error
        try:
            driver = self._wrapper.connection
            lent = borrowed(self.connection, engine)
            if isinstance(self._engine, SqliteEngine) and self._wrapper.transaction_mode not in AT_ONCE:
                # A write lock that is taken after something was read fails at once, whatever the timeout.
                driver.execute("ROLLBACK")
                driver.execute("BEGIN IMMEDIATE")
            self._hold.take(self._engine, driver, partial(interrupt, driver))
            # The first of all, so it tells of the commit alone.
            transaction.on_commit(self._note_commit, using=self._wrapper.alias)
        except Exception as error:
            self.roll_back(error)
            raise self._known(error) from error
        return lent

    def _note_commit(self) -> None:
        """What waits for the commit behind this may write to the file by itself."""
        self._committed = True
        self._turn.close()

    def _leave(self, error: BaseException | None) -> None:
        self._block.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def _known(self, error: Exception) -> Exception:
        if not isinstance(self._engine, SqliteEngine):
            return error
        return fault(cast(Any, error.__cause__ or error), self._engine.path) or error

    def _unsettled(self, error: Exception) -> Exception:
        """What an error at the commit means: itself, or that nobody here knows what came of it."""
        return unsettled("Django's connection", error) if _is_doubtful(error, self._engine) else error


@doorway
@contextmanager
def opened(given: Any, engine: Engine) -> Iterator[OwnDjango]:
    """A transaction on Django's connection: committed at the end of the block, rolled back on an exception."""
    wrapper = _unused(given)
    below = innermost(engine)
    with ExitStack() as turn:
        if isinstance(below, SqliteEngine):
            turn.enter_context(below.turn())
        own = OwnDjango(given, wrapper, engine, turn)
        try:
            try:
                yield own
                own.flush()
            except BaseException as error:
                own.roll_back(error)
                raise
            own.commit()
        finally:
            own.release()


def _unused(given: Any) -> Any:
    """This thread's connection of that alias.

    Raises:
        UnusableConnection: it is another thread's, or in a transaction already.
    """
    wrapper = connections[given.alias]
    if given is not wrapper and not isinstance(given, ConnectionProxy):
        raise UnusableConnection(
            f"this connection {given.alias!r} of Django's belongs to another thread",
            "a plain handler runs in a thread of the worker",
            "pass django.db.connection, or connections[alias], inside the handler",
        )
    if wrapper.in_atomic_block or not wrapper.get_autocommit():
        raise UnusableConnection(
            f"Django's connection {given.alias!r} is in a transaction already",
            "what was done in it would be committed with the job, or be lost with it",
            "enter job.transaction() outside of atomic(), with autocommit on",
        )
    return wrapper


def _is_doubtful(error: Exception, engine: Engine) -> bool:
    cause = error.__cause__
    if not isinstance(error, Error) or not isinstance(cause, Exception):
        return True
    return is_doubtful(cause, getattr(cause, "sqlstate", None), engine)
