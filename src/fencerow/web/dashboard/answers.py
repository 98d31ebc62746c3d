"""What one round of looks has read: all its screens share it, so what several of them ask alike is asked once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from fencerow.db.run import Operation

T = TypeVar("T")

Key = tuple[object, str, str]


class RoundAnswers:
    """For one event loop, and for as long as a round lasts. What it gives must not be changed."""

    def __init__(self) -> None:
        self._kept: dict[Key, tuple[object, Any]] = {}

    async def answer(self, operation: Operation[T], ask: Callable[[], Awaitable[T]]) -> T:
        """What the same operation read before in this round, else what `ask` brings."""
        key = _key(operation)
        if key is None:
            return await ask()
        if key not in self._kept:
            # Its arguments are kept too: a text that tells where one lies in memory then means no other one.
            self._kept[key] = operation.start, await ask()
        value: T = self._kept[key][1]
        return value


def _key(operation: Operation[Any]) -> Key | None:
    """By what two operations read the same; None if that cannot be told."""
    start = operation.start
    if operation.writes or not isinstance(start, partial):
        return None
    return start.func, repr(start.args), repr(sorted(start.keywords.items()))
