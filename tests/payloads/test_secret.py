"""Secrets by their types: found wherever a type has them, and hidden in data of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, NewType, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from fencerow.payloads import Secret
from fencerow.payloads.secret import hide, secrets_in

T = TypeVar("T")
Token = NewType("Token", Annotated[str, Secret])


@dataclass
class Card:
    number: Annotated[str, Secret]
    owner: str
    older: list[Card] = field(default_factory=list)


class Renamed(msgspec.Struct, rename="camel"):
    card_code: Annotated[int, Secret]
    plain_code: int


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


class Keys(TypedDict, total=False):
    one: Annotated[str, Secret()]


class Model(pydantic.BaseModel):
    given: pydantic.SecretStr
    marked: Annotated[str, Secret, pydantic.Field(alias="markedAs")]
    nested: Card | None = None
    shown: str = "x"


class Point(NamedTuple):
    x: int


FOUND: Mapping[str, tuple[Any, Any, Any]] = {
    "a text": (Annotated[str, Secret], "s", "?"),
    "what else is said of it": (Annotated[int, msgspec.Meta(gt=0), Secret], 5, "?"),
    "one of several": (Annotated[str, Secret] | None, "s", "?"),
    "null": (Annotated[str, Secret] | None, None, None),
    "a list": (list[Annotated[str, Secret]], ["a", "b"], ["?", "?"]),
    "any sequence": (Sequence[Card], [{"number": "4"}], [{"number": "?"}]),
    "values of a dict": (dict[str, Annotated[str, Secret]], {"a": "b"}, {"a": "?"}),
    "a dataclass": (Card, {"number": "4", "owner": "ada"}, {"number": "?", "owner": "ada"}),
    "a type that leads back to itself": (
        Card, {"older": [{"number": "4", "older": [{"number": "5"}]}]},
        {"older": [{"number": "?", "older": [{"number": "?"}]}]},
    ),
    "the name in JSON": (Renamed, {"cardCode": 4, "plainCode": 5}, {"cardCode": "?", "plainCode": 5}),
    "a generic": (Page[Card], {"items": [{"number": "4"}]}, {"items": [{"number": "?"}]}),
    "a typed dict": (Keys, {"one": "a", "two": "b"}, {"one": "?", "two": "b"}),
    "a name for a type": (Token, "a", "?"),
    "a model": (
        Model, {"given": "a", "markedAs": "b", "nested": {"number": "4"}, "shown": "c"},
        {"given": "?", "markedAs": "?", "nested": {"number": "?"}, "shown": "c"},
    ),
    "structs of several kinds": (Card | Renamed, {"number": "4", "cardCode": 4}, {"number": "?", "cardCode": "?"}),
    "all of a secret record": (Annotated[Card, Secret], {"owner": "ada"}, "?"),
    "no secret": (dict[str, Point], {"a": {"x": 1}}, {"a": {"x": 1}}),
    "data of another form": (Card, ["4", 5], ["4", 5]),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "data", "shown"), FOUND.values(), ids=FOUND)
def test_a_secret_is_hidden_wherever_its_type_has_it(kind: Any, data: Any, shown: Any) -> None:
    assert hide(data, secrets_in(kind), lambda _: "?") == shown
