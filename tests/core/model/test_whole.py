"""Arguments encoded at once: the very bytes that they have one by one, and nothing that would be refused there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from fencerow.core.model.codec import ArgumentsCodec
from fencerow.errors import InvalidInput


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Line:
    start: Point
    end: Point | None = None


def plain(path: str, pages: int = 1, /, ratio: float = 0.5, *, deep: bool = False) -> None: ...


def rich(point: Point, line: Line | None = None, when: datetime | None = None) -> None: ...


def loose(data: Any, more: dict[str, list[int | None]] | None = None) -> None: ...


def typed(id: UUID, price: Decimal, colour: Colour, blob: bytes = b"") -> None: ...  # noqa: A002


def text(body: str) -> None: ...


def number(value: int) -> None: ...


Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
WHOLE: list[Case] = [
    (plain, ("a.pdf", 3), {}),
    (plain, ('ä\u2028"\\\n', 3), {"deep": True}),
    (plain, ("a.pdf",), {"deep": True, "ratio": 2.0}),
    (plain, ("a.pdf",), {"ratio": 1}),
    (rich, (Point(1),), {}),
    (rich, (), {"when": datetime(2026, 1, 2, tzinfo=UTC), "point": Point(1, 2)}),
    (loose, ({"b": [1.0, 1e22, -0.0], "a": {"deep": True}},), {"more": {"x": [1, 2]}}),
    (typed, (UUID(int=7), Decimal("1.10"), Colour.RED, b"raw"), {}),
]
# Left to the careful way: it may refuse them, or write them as it always has.
CAREFUL: list[Case] = [
    (loose, (None,), {}),
    (loose, (float("nan"),), {}),
    (loose, ({"a": float("inf")},), {}),
    (loose, ("a\x00b",), {}),
    (loose, ("\ud800",), {}),
    (loose, (object(),), {}),
    (loose, (2**70,), {}),
    (loose, (b"bytes",), {}),
    (text, (b"bytes",), {}),
    (text, ("1234567890123456789",), {}),
    (text, (1,), {}),
    (number, ("1",), {}),
    (number, (True,), {}),
    (number, (2**64,), {}),
    (rich, ({"x": 1},), {}),
    (rich, (Point("no"),), {}),  # type: ignore[arg-type]
]


def one_by_one(function: Callable[..., Any]) -> ArgumentsCodec:
    return dataclasses.replace(ArgumentsCodec.of(function, None), whole=None)


@pytest.mark.parametrize(("function", "args", "kwargs"), WHOLE)
def test_the_bytes_are_those_of_the_arguments_one_by_one(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    codec = ArgumentsCodec.of(function, None)
    assert codec.whole is not None
    bound = dict(codec.signature.bind(*args, **kwargs).arguments)

    assert (
        codec.whole.encode(bound) == one_by_one(function).encode(args, kwargs) == codec.encode(args, kwargs)
    )
    assert list(msgspec.json.decode(codec.encode(args, kwargs))) == list(bound)


@pytest.mark.parametrize(("function", "args", "kwargs"), CAREFUL)
def test_what_is_unusual_ends_as_it_does_one_by_one(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    outcomes = []
    for codec in (ArgumentsCodec.of(function, None), one_by_one(function)):
        try:
            outcomes.append(str(codec.encode(args, kwargs)))
        except InvalidInput as error:
            outcomes.append(f"{type(error).__name__} {error}")

    assert outcomes[0] == outcomes[1]


def test_sets_are_left_to_the_careful_way() -> None:
    """They are sorted, and so would be the parameters."""

    def tagged(zeta: set[str], alpha: int) -> None: ...

    codec = ArgumentsCodec.of(tagged, None)

    assert codec.whole is None
    assert codec.encode(({"b", "a"}, 1), {}) == b'{"zeta":["a","b"],"alpha":1}'


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("a", 1, 2.0, True), {}),
        (("a",), {"path": "b"}),
        (("a", 1, 2.0), {"ratio": 3.0}),
        (("a",), {"unknown": 1}),
        ((), {"path": "a"}),
    ],
)
def test_a_call_that_does_not_fit_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="plain"):
        ArgumentsCodec.of(plain, None).encode(args, kwargs)
