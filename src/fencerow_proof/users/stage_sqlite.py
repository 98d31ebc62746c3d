"""A SQLite file as a stage: real connections, held before each statement and in front of each lock."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fencerow_proof.errors import CannotExplore
from fencerow_proof.users.performer import Performer, Tell
from fencerow_proof.users.protocol import in_one_line, is_harmless
from fencerow_proof.users.stage import Look, stuck
from fencerow_proof.users.styles import Style

T = TypeVar("T")

SHOWN_ROWS = 5
ENDS = ("COMMIT", "ROLLBACK", "END")


class SqliteStage:
    """Plays on a file that belongs to the test alone.

    SQLite lets one write at a time and makes the others wait: here nobody waits by the clock. Who meets a lock
    stands back until another's transaction has ended, and is then told to try again or, when nobody else can go
    on, that the database is locked. SQLite's immediate refusals reach the actor at once.
    """

    engine = "sqlite"

    def __init__(self, path: str, *, patience_s: float) -> None:
        self._path = path
        self._patience_s = patience_s
        self._performers: dict[str, Performer] = {}
        try:
            self._control = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
            self._control.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
        except sqlite3.Error as error:
            raise CannotExplore(
                f"the file {Path(path).name} cannot be opened: {error}",
                "the explorer needs a scratch file",
                "check its URL, and that its folder exists",
            ) from None
        self._open: list[SteppedConnection] = []

    # --- connections -----------------------------------------------------------------------------------

    def seat(self, performer: Performer) -> None:
        self._performers[performer.name] = performer

    def connect(self, name: str, style: Style, given: Callable[..., Any] | None) -> Any:
        factory = partial(SteppedConnection, lambda: self._performers[name], self._open)
        if given is not None:
            return given(self._path, factory=factory)
        if style is Style.ASYNC:
            raise CannotExplore(
                f"async actor {name!r} has no connection",
                "the standard library has no async driver for SQLite",
                "pass connect=aiosqlite.connect",
            )
        level = None if style is Style.GENERATOR else ""
        return factory(self._path, isolation_level=level)

    # --- an order ----------------------------------------------------------------------------------------

    def run(self, script: str) -> None:
        self._control.executescript(script)

    def begin(self) -> None:
        """Nothing is left over from the order before."""

    def let_go(self, performer: Performer) -> None:
        performer.let_go()

    def settle(
        self,
        performers: Sequence[Performer],
        tell: Tell,  # noqa: ARG002 (waits are told where they are met)
    ) -> None:
        deadline = time.monotonic() + self._patience_s
        hall = performers[0].hall
        with hall:
            while moving := [each for each in performers if each.is_moving]:
                if not hall.wait(max(0.0, deadline - time.monotonic())):
                    raise stuck(moving, self._patience_s)
            if any(each.ends for each in performers):
                for each in performers:
                    each.ready = each.ready or not each.ends

    def unblock(self, performers: Sequence[Performer]) -> bool:
        """Let the last of those who wait for a lock be told that the database is locked."""
        waiting = [each for each in performers if not each.done and not each.ready]
        if not waiting:
            return False
        waiting[-1].timed_out = True
        waiting[-1].let_go()
        return True

    def look(self, queries: Mapping[str, str]) -> Look:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for name, text in queries.items():
            try:
                found[name] = self._control.execute(text).fetchmany(SHOWN_ROWS)
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                return None  # somebody is in the middle of a commit
        return found

    def tables(self) -> Mapping[str, str] | None:
        """In a file each step meets each other: its locks and its snapshots are those of the whole."""
        return None

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return self._control.execute(text).fetchall()

    def cut(self) -> None:
        for connection in list(self._open):
            connection.close()

    def close(self) -> None:
        self.cut()
        self._control.close()


class SteppedConnection(sqlite3.Connection):
    """A connection of the standard library whose every statement is a step of an actor."""

    def __init__(
        self, performer: Callable[[], Performer], opened: list[SteppedConnection], *args: Any, **options: Any
    ) -> None:
        self._current = performer
        self._opened = opened
        self.has_read = False  # whether its transaction holds a lock: then SQLite refuses at once
        # The explorer closes what an abandoned actor has left, from its own thread; nobody waits by the clock.
        super().__init__(*args, **{**options, "check_same_thread": False, "timeout": 0})
        opened.append(self)

    @property
    def performer(self) -> Performer:
        """Who plays on this connection now."""
        return self._current()

    def cursor(self, factory: Any = None) -> Any:
        if factory is None or factory is sqlite3.Cursor:
            return super().cursor(SteppedCursor)
        return super().cursor(type("Stepped", (SteppedCursor, factory), {}))

    def execute(self, text: str, values: Any = (), /) -> Any:
        return self.cursor().execute(text, values)

    def executemany(self, text: str, values: Iterable[Any], /) -> Any:
        return self.cursor().executemany(text, values)

    def executescript(self, script: str, /) -> Any:
        return self.cursor().executescript(script)

    def commit(self) -> None:
        if self.in_transaction:
            self.step("COMMIT", super().commit)

    def rollback(self) -> None:
        if self.in_transaction:
            self.step("ROLLBACK", super().rollback)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if kind is None:
            self.commit()
        else:
            self.rollback()
        return False

    def close(self) -> None:
        if self in self._opened:
            self._opened.remove(self)
            if self.in_transaction:
                super().rollback()  # a cursor that somebody still holds would keep the file locked
        super().close()

    def step(self, text: str, run: Callable[[], T]) -> T:
        """Run one statement when the actor is let go, and again after each wait for a lock."""
        performer = self.performer
        if not performer.stepping or is_harmless(text):
            result = run()
            performer.answered(text, ended=False)
            return result
        performer.arrive(text)
        is_end = text.strip().upper().startswith(ENDS)
        while True:
            try:
                result = run()
            except sqlite3.Error as error:
                if waits(error, self.has_read and not is_end):
                    performer.answered(f"{text}: waits for a lock", ended=False)
                    if performer.lose():
                        continue
                self._after(is_end)
                performer.answered(f"{text} → {type(error).__name__}: {error}", ended=not self.in_transaction)
                raise
            self._after(is_end)
            performer.answered(text + _changed(result), ended=is_end or not self.in_transaction)
            return result

    def _after(self, is_end: bool) -> None:
        self.has_read = self.in_transaction and not is_end


class SteppedCursor(sqlite3.Cursor):
    """Its connection's steps, with the rows that were fetched told in the story."""

    @property
    def _stepped(self) -> SteppedConnection:
        found = self.connection
        assert isinstance(found, SteppedConnection)
        return found

    def execute(self, text: str, values: Any = (), /) -> Any:
        return self._stepped.step(_told(text, values), lambda: self._run(text, values))

    def executemany(self, text: str, values: Iterable[Any], /) -> Any:
        rows = list(values)
        told = f"{in_one_line(text)}  [{len(rows)} times]"
        return self._stepped.step(told, lambda: super(SteppedCursor, self).executemany(text, rows))

    def executescript(self, script: str, /) -> Any:
        return self._stepped.step(
            in_one_line(script), lambda: super(SteppedCursor, self).executescript(script)
        )

    def fetchone(self) -> Any:
        row = super().fetchone()
        self._tell([] if row is None else [row])
        return row

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        rows = super().fetchmany(self.arraysize if size is None else size)
        self._tell(rows)
        return rows

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        self._tell(rows)
        return rows

    def __next__(self) -> Any:
        row = super().__next__()
        self._tell([row])
        return row

    def _tell(self, rows: Sequence[Any]) -> None:
        """What the actor got to see; SQLite hands out rows after the statement."""
        shown = ", ".join(
            str(tuple(row)) if isinstance(row, sqlite3.Row) else str(row) for row in rows[:SHOWN_ROWS]
        )
        self._stepped.performer.note(f"  ← {in_one_line(shown) or 'no row'}")

    def _run(self, text: str, values: Any) -> Any:
        result = super().execute(text, values)
        if "busy_timeout" in text.lower():
            super().execute("PRAGMA busy_timeout = 0")  # nobody waits by the clock here
        return result


def is_busy(error: sqlite3.Error) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_BUSY


def waits(error: sqlite3.Error, holds_lock: bool) -> bool:
    """Whether SQLite would wait here if it were given time. It refuses at once who waited while holding a lock."""
    code = getattr(error, "sqlite_errorcode", 0)
    return is_busy(error) and code != sqlite3.SQLITE_BUSY_SNAPSHOT and not holds_lock


def _told(text: str, values: Any) -> str:
    return in_one_line(text) + (f"  {in_one_line(repr(values), 100)}" if values else "")


def _changed(result: Any) -> str:
    """How many rows a change met; those of a query are fetched later, or never."""
    count = getattr(result, "rowcount", -1)
    if count < 0:
        return ""
    return " → no row" if count == 0 else " → 1 row" if count == 1 else f" → {count} rows"
