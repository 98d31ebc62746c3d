"""Which mutexes the running code holds, so that it is told when it would wait for itself.

It is a context variable: what a block starts inherits it, what merely works beside it does not.
"""

from __future__ import annotations

from contextvars import ContextVar

from fencerow.db.engine import Engine
from fencerow.guards.mutex.errors import MutexMisuse
from fencerow.guards.mutex.hold import Hold

_held: ContextVar[tuple[Hold, ...]] = ContextVar("fencerow_held_mutexes", default=())


def refuse_nested(engine: Engine, key: str, own: Hold | None) -> None:
    """Pass unless this code holds the key already, by another object than that of `own`.

    Raises:
        MutexMisuse: it does.
    """
    if any(
        each is not own and each.is_held and each.key == key and each.engine is engine for each in _held.get()
    ):
        raise MutexMisuse(
            f"this code holds the mutex {key!r} already",
            "it would wait for itself",
            "take it once, and pass the Mutex on",
        )


def entered(hold: Hold) -> None:
    """This code holds it from now on."""
    _held.set((*(each for each in _held.get() if each.is_held), hold))


def left(hold: Hold) -> None:
    """This code holds it no more."""
    _held.set(tuple(each for each in _held.get() if each is not hold))
