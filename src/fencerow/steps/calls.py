"""The calls of a user's functions, as the script of a step yields them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.db.run import Operation


class Call:
    """A call of a user's function, as a script yields it."""

    __slots__ = ("args", "function")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args


class Together:
    """A call whose effects and memory are one commit, as a script yields it.

    `hold` is the first operation of the transaction, `remember` makes the last one of what the function returned.
    """

    __slots__ = ("args", "function", "hold", "remember")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        hold: Operation[bool | None],
        remember: Callable[[Any], Operation[bool]],
    ) -> None:
        self.function = function
        self.args = args
        self.hold = hold
        self.remember = remember
