"""What sends a request in these tests: its headers, its body in parts with pauses, on a loop whose time is moved."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from starlette.datastructures import Headers

T = TypeVar("T")
JSON = ("content-type", "application/json")


def headers(*pairs: tuple[str, str]) -> Headers:
    """As Starlette makes them of what a server hands over."""
    return Headers(raw=[(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs])


class Sender:
    """The `receive` of a request: bytes are a part of its body, a number is a pause, None is a hang-up.

    `left`: what nobody has asked for.
    """

    def __init__(self, parts: Iterable[bytes | float | None]) -> None:
        self.left = list(parts)

    async def __call__(self) -> dict[str, Any]:
        while self.left and isinstance(self.left[0], (int, float)):
            await asyncio.sleep(self.left[0])
            self.left.pop(0)
        part = self.left.pop(0) if self.left else b""
        if part is None:
            return {"type": "http.disconnect"}
        assert isinstance(part, bytes)
        return {"type": "http.request", "body": part, "more_body": bool(self.left)}


class _Skipping(selectors.DefaultSelector):
    """Where a loop would wait for its next timer, its time jumps there."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class MovedLoop(asyncio.SelectorEventLoop):
    """A loop whose time is moved, and does not pass."""

    def __init__(self) -> None:
        self.moved = _Skipping()
        super().__init__(self.moved)

    def time(self) -> float:
        return self.moved.now


def played(act: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What it comes to, with no second of a real clock between."""
    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        return runner.run(act())
