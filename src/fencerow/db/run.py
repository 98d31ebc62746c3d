"""Work as generators, and the two loops that run them: the one idea that keeps sync, async and two engines small.

An **operation** yields `Statement`s and is sent the rows of each; it does no I/O itself. One run of an
operation is one transaction. Whoever runs it decides where: our pool, the user's open connection,
or an explorer that plays several actors one statement at a time.

A **procedure** yields operations, pauses and wake-ups, for what needs more than one transaction: ask again after a
lost answer, find the job behind a key and then cancel it.

`run` and `arun` are the whole sync/async story: what yields requests is written once, and they bring it the answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial, wraps
from threading import Thread
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from fencerow.db.queries import Query

P = ParamSpec("P")
T = TypeVar("T")
Q = TypeVar("Q")

_sleep: Callable[[float], object] = time.sleep

Param = str | int | float | bytes | None | list[str] | list[int] | list[str | None]
Row = tuple[object, ...]
Rows = list[Row]


class CommonParameters(msgspec.Struct):
    """Those that many statements have in common. `as_sent`: there whoever sends such a statement keeps them as it sends
    them, by its text."""

    params: Mapping[str, Any]
    as_sent: dict[str, Any]


class AlikeParameters(dict[str, Any]):
    """All parameters of one statement, of which all but a few are `common`."""

    __slots__ = ("common",)
    common: CommonParameters


# Statements and operations are made again for every run of one, which takes a dataclass three times as long.
class Statement(msgspec.Struct):
    """One named query with its parameters; the text is looked up in the dialect of whoever runs it.

    What was composed for a user's own table brings its `query` along, and its parameters may be of any type
    that the user's driver takes. `fresh`: its guard must see what others have committed until now, so it is refused
    in a transaction that sees only the past. `ahead`: another follows it before its rows are read, so a session may
    send both in one message, and put the rows into the list that it has answered with once they are there. It stays
    a statement of its own, and the next one has a later snapshot. `stores`: the ids of jobs that must
    be there behind it: where a row may be left out silently, a session looks.
    """

    name: str
    params: Mapping[str, Any]
    query: Query | None = None
    fresh: bool = False
    ahead: bool = False
    stores: Sequence[str] = ()


Steps = Generator[Statement, Rows, T]


class Tells(msgspec.Struct):
    """Wake-ups of what an operation stores. Where its runner could not send them, whoever asked for it does."""

    messages: list[str]
    are_told: bool = False


class Operation(msgspec.Struct, Generic[T]):
    """A unit of work that can be started afresh: what runners are given.

    `alone`: it is a single statement on PostgreSQL, so it runs in autocommit and saves the round
    trips of BEGIN and COMMIT. `repeatable`: running it again after an unknown outcome changes nothing
    more, so a runner may do so by itself. `writes` names what it writes, see `operation`.
    `patience_s`: how long PostgreSQL may take for a statement of it, where that is not the engine's limit.
    `reads` names what one that writes nothing reads, see `operation`. `inside`: what it does lasts as long as the
    transaction, so it is refused on a connection that has none open. `prepared`: PostgreSQL plans its one statement
    once for each connection, see `operation`. `keeps_plans`: so it does with those of its transaction, see there.
    `walks`: its one statement walks an index from a place in it, see there.
    `computes`: between its statements it computes for longer than an event
    loop may stand still. `tells`: wake-ups of what it stores, which its runner may send together with it. `whole`: this
    statement is all of it, and nobody reads what it is answered.
    """

    name: str
    start: Callable[[], Steps[T]]
    alone: bool = False
    repeatable: bool = False
    writes: str = "jobs"
    patience_s: float | None = None
    reads: str = "jobs"
    inside: bool = False
    prepared: bool = False
    keeps_plans: bool = False
    walks: bool = False
    computes: bool = False
    tells: Tells | None = None
    whole: Statement | None = None

    @property
    def of_workers(self) -> bool:
        """Whether it touches worker rows alone."""
        return self.writes == "workers" or (self.writes == "" and self.reads == "workers")

    def steps(self) -> Steps[T]:
        """A fresh run, for `yield from` inside another operation."""
        return self.start()


def joining(operation: Operation[T], connection: object | None) -> Operation[T]:
    """An operation that must be part of the caller's transaction: refused on a connection that has none open."""
    return operation if connection is None else msgspec.structs.replace(operation, inside=True)


def operation(
    *,
    alone: bool = False,
    repeatable: bool = False,
    writes: str = "jobs",
    patience_s: float | None = None,
    reads: str = "jobs",
    inside: bool = False,
    prepared: bool = False,
    keeps_plans: bool = False,
    walks: bool = False,
    computes: bool = False,
) -> Callable[[Callable[P, Steps[T]]], Callable[P, Operation[T]]]:
    """Turn a generator function into one that returns an `Operation`.

    `writes` is "jobs", "workers" or "" (reads only): SQLite keeps worker rows in a file of their own,
    so that a long transaction on the jobs never delays the renewal of a lease. What writes nothing says what it
    `reads`: "jobs", "workers" or "both". Who reads both takes its turn as a writer of jobs does. Who reads or
    writes worker rows alone holds nothing of the jobs. Otherwise one would hold the jobs' file and wait for the
    other while somebody does it the other way round, which SQLite does not notice: the engine refuses a statement
    of the file that was not named. A statement that PostgreSQL refuses inside a transaction
    (DETACH ... CONCURRENTLY) is an operation `alone`.

    `prepared` is for statements of every job, and only for those `alone`: where what was prepared turns out not to be
    there, they are simply sent again. Their one plan must serve an empty table and a full one, whatever the parameters
    are; tests/core/store/test_kept_plans.py looks at it.

    `keeps_plans` is the same for the statements of one that is not `alone`, where a worker runs it many times a second
    and most of what they cost would be their plans. It must be `repeatable`: it is run again where one was not as
    prepared. tests/turns/test_kept_plans.py looks at those of turns.

    `walks` is for a statement, also `alone`, that reads the first few of many rows in the order of an index. Behind
    statistics of an idle queue PostgreSQL would read and sort them all. Through a pooler it is told so with each.
    """
    assert alone or not (prepared or walks)
    assert not keeps_plans or (repeatable and not alone)

    def decorate(function: Callable[P, Steps[T]]) -> Callable[P, Operation[T]]:
        @wraps(function)
        def build(*args: P.args, **kwargs: P.kwargs) -> Operation[T]:
            return Operation(
                function.__name__,
                partial(function, *args, **kwargs),
                alone,
                repeatable,
                writes,
                patience_s,
                reads,
                inside,
                prepared,
                keeps_plans,
                walks,
                computes,
            )

        return build

    return decorate


@dataclass(frozen=True, slots=True)
class Pause:
    """Let so many seconds pass. `run` and `arun` do that themselves: nobody who answers requests meets one."""

    seconds: float


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Send these wake-ups; what they tell is committed."""

    messages: list[str]


Request = Operation[Any] | WakeUp
Procedure = Generator[Request | Pause, Any, T]


class Runner(Protocol):
    """Whoever runs operations: an engine, or a connection that the caller owns."""

    def run(self, operation: Operation[T]) -> T: ...

    async def arun(self, operation: Operation[T]) -> T: ...


def run(requests: Generator[Q | Pause, Any, T], answer: Callable[[Q], Any]) -> T:
    """Run a generator of requests to its end, in this thread, with a function that answers one.

    Whatever `answer` raises is raised in the generator where it waits for the answer, so that it can put things right
    and ask for more; what it does not catch comes out here.
    """
    try:
        request = next(requests)
        while True:
            try:
                reply = _sleep(request.seconds) if isinstance(request, Pause) else answer(request)
            except BaseException as error:
                request = requests.throw(error)
            else:
                request = requests.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        requests.close()


async def arun(requests: Generator[Q | Pause, Any, T], answer: Callable[[Q], Awaitable[Any]]) -> T:
    """`run` in this event loop.

    A cancel is raised in the generator too, and what that still asks for is done before the cancel goes on.
    """
    try:
        request = next(requests)
        while True:
            try:
                reply = await (
                    asyncio.sleep(request.seconds) if isinstance(request, Pause) else answer(request)
                )
            except BaseException as error:
                request = requests.throw(error)
            else:
                request = requests.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        requests.close()


async def arun_beside(requests: Generator[Q | Pause, Any, T], answer: Callable[[Q], Awaitable[Any]]) -> T:
    """`arun` for what computes between its requests: a thread of its own does that. Only the answers come from this
    event loop, which goes on meanwhile.

    A cancel waits until it has ended, since nobody can end a thread.

    Raises:
        RuntimeError: the system refuses a thread; nothing was asked.
    """
    loop = asyncio.get_running_loop()
    ended: Future[T] = Future()

    async def answered(request: Q) -> Any:
        return await answer(request)

    def compute() -> None:
        try:
            ended.set_result(
                run(requests, lambda each: asyncio.run_coroutine_threadsafe(answered(each), loop).result())
            )
        except BaseException as error:
            ended.set_exception(error)

    Thread(target=compute, name="fencerow-computing", daemon=True).start()
    return await _to_its_end(asyncio.wrap_future(ended))


async def _to_its_end(running: asyncio.Future[T]) -> T:
    """Its result, once it is there.

    Raises:
        CancelledError: somebody has cancelled this meanwhile.
    """
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # nobody asks for it any more
        raise cancelled
    return running.result()


def ask(operation: Operation[T]) -> Procedure[T]:
    """Run one operation inside a procedure."""
    answer: T = yield operation
    return answer


def execute(name: str, params: Mapping[str, Param] | None = None, /, **more: Param) -> Steps[Rows]:
    """Yield one statement and return its rows. What every job passes yields it at once and spares this generator."""
    return (yield Statement(name, {**(params or {}), **more}))


def execute_fresh(name: str, /, *, needed: bool = True, **params: Param) -> Steps[Rows]:
    """`execute` for a statement whose guard must see what was committed until now, where that is `needed`."""
    return (yield Statement(name, params, fresh=needed))


def execute_ahead(name: str, /, **params: Param) -> Steps[Rows]:
    """`execute` for a statement whose answer alone is not waited for. Its rows are there when the next is answered."""
    return (yield Statement(name, params, ahead=True))


def execute_composed(query: Query, params: Mapping[str, Any]) -> Steps[list[dict[str, Any]]]:
    """Yield a query that was composed for a user's own table and return its rows by the names of their columns."""
    rows = yield Statement(query.name, params, query)
    return [dict(zip(map(str, rows[0]), row, strict=True)) for row in rows[1:]]


def first_column(rows: Iterable[Row]) -> list[str]:
    """The first column of each row as text: ids, mostly."""
    return [str(row[0]) for row in rows]


def as_int(value: object) -> int:
    """A column that holds a whole number."""
    assert isinstance(value, int), f"expected a whole number, found {type(value).__name__}"
    return value


def as_int_or_none(value: object) -> int | None:
    """A column that holds a whole number, or nothing."""
    return None if value is None else as_int(value)


def text_or_none(value: object) -> str | None:
    """A column that holds text, or an id, or nothing."""
    return None if value is None else str(value)
