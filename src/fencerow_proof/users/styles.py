"""The ways in which a user may write an actor, and how each is run on a connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fencerow_proof.errors import CannotExplore

Ask = str | tuple[str, Sequence[Any] | Mapping[str, Any]]
"""What a generator yields: a statement, or a statement and its values."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a generator gets for a statement: its rows, and how many it returned or changed."""

    rows: list[tuple[Any, ...]]
    count: int


Script = Callable[[], Generator[Ask, Answer, Any]]


class Style(Enum):
    """How an actor is written."""

    GENERATOR = "a generator of statements"
    PLAIN = "a function of a connection"
    ASYNC = "an async function of a connection"


def style_of(name: str, actor: object) -> Style:
    """How this actor is written.

    Raises:
        CannotExplore: it is nothing that can be played.
    """
    if inspect.isgeneratorfunction(actor):
        return Style.GENERATOR
    if inspect.iscoroutinefunction(actor):
        return Style.ASYNC
    if callable(actor) and not inspect.isasyncgenfunction(actor):
        return Style.PLAIN
    raise CannotExplore(
        f"actor {name!r} is {type(actor).__name__}",
        "expected a generator function that yields SQL, or a function or async function of a connection",
        "pass the function itself, not what it returns",
    )


def run_script(script: Script, connection: Any) -> Any:
    """Play a generator on a connection in autocommit; each statement's error is raised where it was yielded."""
    steps = script()
    try:
        asked = next(steps)
        while True:
            try:
                answer = _asked(connection, asked)
            except Exception as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(answer)
    except StopIteration as stop:
        return stop.value
    finally:
        steps.close()
        connection.rollback()  # what a script leaves open is undone, as the end of its connection would


def run_plain(actor: Callable[[Any], Any], connection: Any) -> Any:
    """Run a function, then commit; or roll back when it raises: as `with connect() as connection` does."""
    try:
        result = actor(connection)
    except Exception:
        if hasattr(connection, "rollback"):
            connection.rollback()
        raise
    if hasattr(connection, "commit"):
        connection.commit()
    return result


async def run_async(actor: Callable[[Any], Any], connection: Any) -> Any:
    """`run_plain` for async functions. A driver without commit and rollback, as asyncpg, commits by itself."""
    try:
        result = await actor(connection)
    except Exception:
        if hasattr(connection, "rollback"):
            await connection.rollback()
        raise
    if hasattr(connection, "commit"):
        await connection.commit()
    return result


class Desk:
    """Where one actor works order after order: its connection, if it is ours, and its event loop."""

    def __init__(self, style: Style, connect: Callable[[], Any], *, keep: bool) -> None:
        self._style = style
        self._connect = connect
        self._keep = keep
        self._connection: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def work(self, actor: Callable[..., Any], stepping: Callable[[bool], None]) -> Any:
        """Run the actor to its end. `stepping` is told when what it does begins and ceases to be its own."""
        if self._style is Style.ASYNC:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(self._awork(actor, stepping))
        connection = self._connection or self._connect()
        self._connection = None
        try:
            stepping(True)
            run = run_script if self._style is Style.GENERATOR else run_plain
            result = run(actor, connection)
            if self._keep:
                self._connection = connection
        finally:
            stepping(False)
            if self._connection is None:
                connection.close()
        return result

    def drop(self) -> None:
        """Close what was kept: the next order opens another."""
        connection, self._connection = self._connection, None
        if connection is not None and self._loop is not None:
            self._loop.run_until_complete(connection.close())
        elif connection is not None:
            connection.close()

    def close(self) -> None:
        """Close everything."""
        self.drop()
        if self._loop is not None:
            self._loop.close()

    async def _awork(self, actor: Callable[..., Any], stepping: Callable[[bool], None]) -> Any:
        connection = self._connection
        if connection is None:
            connection = self._connect()
            if inspect.isawaitable(connection):
                connection = await connection
        self._connection = None
        try:
            stepping(True)
            result = await run_async(actor, connection)
            if self._keep:
                self._connection = connection
        finally:
            stepping(False)
            if self._connection is None:
                await _closed(connection)
        return result


async def _closed(connection: Any) -> None:
    closing = connection.close()
    if inspect.isawaitable(closing):
        await closing


def _asked(connection: Any, asked: Ask) -> Answer:
    text, values = (asked, ()) if isinstance(asked, str) else asked
    cursor = connection.execute(text, values) if values else connection.execute(text)
    rows = [tuple(row) for row in cursor.fetchall()] if cursor.description is not None else []
    return Answer(rows, max(cursor.rowcount, len(rows)))
