"""What a transaction of ours on a user's own connection has, whoever made it.

A watch over it, a way to give it up from any thread, and a judgement of a commit that raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from fencerow.db.engine import Engine
from fencerow.db.errors import OutcomeUnknown
from fencerow.db.faults import LOST_STATES, connection_lost
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_file import in_doubt
from fencerow.db.text import said_of

log = logging.getLogger("fencerow.db")


class ConnectionHold:
    """`waits` stands around each call that waits for the database, `give_up` ends it from any thread."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._busy: Callable[[], None] = _nothing
        self._rest: Callable[[], None] = _nothing
        self.give_up: Callable[[], None] = _nothing

    def take(self, engine: Engine, driver: Any, interrupt: Callable[[], None]) -> None:
        """Watch the driver's connection; where it has no socket of PostgreSQL, `interrupt` gives it up."""
        if isinstance(engine, PostgresEngine) and hasattr(driver, "fileno"):
            watched = self._held.enter_context(engine.watched(driver.fileno()))
            self._busy, self._rest, self.give_up = watched.busy, watched.rest, watched.abandon
        else:
            self.give_up = interrupt

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Around a call that waits for the database: it may be given up once it waits for too long."""
        self._busy()
        try:
            yield
        finally:
            self._rest()

    def at_the_end(self, end: Callable[[], None]) -> None:
        """What is called at the release, the last one first."""
        self._held.callback(end)

    def release(self) -> None:
        """Watch it no more."""
        self.give_up = _nothing
        self._held.close()


def interrupt(driver: Any) -> None:
    """End a statement of SQLite's in whatever thread it runs."""
    with suppress(Exception):  # it is closed
        driver.interrupt()


def is_doubtful(cause: Exception, state: str | None, engine: Engine) -> bool:
    """Whether a commit may have happened for which a driver raised this: no server said that it refused it.

    `state`: PostgreSQL's code. `engine`: the innermost.
    """
    if isinstance(engine, SqliteEngine):
        return in_doubt(cause, engine.path) is not None
    return state is None or state in LOST_STATES or connection_lost(cause)


def unsettled(whose: str, error: Exception) -> OutcomeUnknown:
    """The error for a commit of which nobody here knows what came."""
    log.warning("the commit of %s raised: %s", whose, error)
    return OutcomeUnknown(
        f"the commit of {whose} raised an error that leaves its outcome open",
        f"it may have happened or not ({said_of(error)})",
        "ask before repeating it",
    )


def _nothing() -> None:
    """There is nobody to tell."""
