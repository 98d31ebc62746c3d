"""Locks by name that end with the user's own transaction, and never later: there are none of the session here."""

from __future__ import annotations

import msgspec

from fencerow.core.errors import Busy, InvalidInput, RetryTransaction, UnusableConnection
from fencerow.core.locator import Locator
from fencerow.db.locks import lock_number
from fencerow.db.run import Steps, execute, operation
from fencerow.db.text import check_text
from fencerow.located import arun, run

NAMESPACE = "advisory"
NAMESPACE_LENGTH_MAX = 100
PART_LENGTH_MAX = 1_000

Part = str | int


@operation(inside=True)
def hold_number(number: int) -> Steps[None]:
    """Wait for the number, and hold it until the transaction ends."""
    yield from execute("advisory_lock", lock=number)


@operation(inside=True)
def try_number(number: int) -> Steps[bool]:
    """Hold the number until the transaction ends if nobody else does."""
    return bool((yield from execute("try_advisory_lock", lock=number))[0][0])


def advisory_lock(place: Locator, *parts: Part, connection: object, namespace: str = NAMESPACE) -> None:
    """Wait until no other transaction holds the lock of this name; yours holds it until it commits or rolls back.

    All `parts` together are the name, so ("a", "b") and ("ab",) are two names. May be repeated. PostgreSQL
    notices when two transactions wait for each other. On SQLite it takes the file's one write lock, so all
    names share one lock.

    Raises:
        UnusableConnection: no transaction is open there, so it would lock nothing.
        RetryTransaction: roll back and run the whole transaction again.
        InvalidInput: the name cannot be used.
    """
    run(place, hold_number(number_of(parts, namespace)), _given(connection))


async def aadvisory_lock(
    place: Locator, *parts: Part, connection: object, namespace: str = NAMESPACE
) -> None:
    """`advisory_lock` for async code; the connection is an async one."""
    await arun(place, hold_number(number_of(parts, namespace)), _given(connection))


def try_advisory_lock(place: Locator, *parts: Part, connection: object, namespace: str = NAMESPACE) -> bool:
    """Like `advisory_lock`, without waiting; returns whether your transaction holds the lock now.

    On SQLite false may also mean that another transaction has changed what yours has read: roll yours back.
    """
    try:
        return run(place, try_number(number_of(parts, namespace)), _given(connection))
    except (Busy, RetryTransaction):
        if not place.engine.traits.one_writer:  # there the lock is that of the file
            raise
        return False


async def atry_advisory_lock(
    place: Locator, *parts: Part, connection: object, namespace: str = NAMESPACE
) -> bool:
    """`try_advisory_lock` for async code."""
    try:
        return await arun(place, try_number(number_of(parts, namespace)), _given(connection))
    except (Busy, RetryTransaction):
        if not place.engine.traits.one_writer:  # there the lock is that of the file
            raise
        return False


def _given(connection: object | None) -> object:
    if connection is None:
        raise UnusableConnection(
            "a lock was asked for without a transaction",
            "it lasts until your transaction ends; a transaction of Fencerow's own would end at once",
            "pass the connection or session in which your transaction is open",
        )
    return connection


def number_of(parts: tuple[Part, ...], namespace: str) -> int:
    """The 64-bit number of a name.

    Raises:
        InvalidInput: a part is neither text nor a whole number, or there is none.
    """
    check_text(namespace, "the namespace of a lock", NAMESPACE_LENGTH_MAX)
    if not parts:
        raise InvalidInput(
            "a lock without a name was asked for",
            "all callers would wait for the same lock",
            "name what it protects",
        )
    for part in parts:
        if isinstance(part, str):
            check_text(part, "a part of the lock's name", PART_LENGTH_MAX)
        elif isinstance(part, bool) or not isinstance(part, int):
            raise InvalidInput(
                f"a part of the lock's name is of type {type(part).__name__}",
                "a name is made of text and whole numbers",
                "pass str or int",
            )
    return lock_number(f"user:{namespace}", msgspec.json.encode(parts).decode())
