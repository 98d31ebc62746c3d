"""What JSON would change without a word is refused: where the value is passed, or where its type is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import annotated_types
import msgspec
import pydantic
import pytest

from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.kept import look_for
from fencerow.core.model.value import ValueCodec
from fencerow.errors import DeclarationError, InvalidPayload


class Login(pydantic.BaseModel):
    user: str
    password: pydantic.SecretStr


class Whole(Login):
    """Its own serializer writes the secret."""

    secret_id: int = pydantic.Field(1, alias="secretId")
    _cached: int = 0

    @pydantic.field_serializer("password", when_used="json")
    def written(self, value: pydantic.SecretStr) -> str:
        return value.get_secret_value()


class Masked(pydantic.BaseModel):
    card: str

    @pydantic.field_serializer("card")
    def written(self, value: str) -> str:
        return "…" + value[-4:]


class Sheet(msgspec.Struct):
    rows: dict[str, int]


class SignedSheet(Sheet):
    by: str = ""


@dataclass
class Animal:
    name: str


@dataclass
class Dog(Animal):
    breed: str


class Row(TypedDict):
    a: int


@dataclass
class Amount:
    value: Annotated[int, pydantic.Field(gt=0)]


def codec(annotation: Any) -> ArgumentsCodec:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation
    return ArgumentsCodec.of(take, None)


LOGIN = Login(user="ann", password=pydantic.SecretStr("correct horse"))
WHOLE = Whole(user="ann", password=pydantic.SecretStr("correct horse"), secretId=2)


@pytest.mark.parametrize(
    ("annotation", "value", "path", "reason"),
    [
        (Login, LOGIN, ".password", "SecretStr"),
        (list[Login | None], [None, LOGIN], "[1].password", "SecretStr"),
        (Any, {"login": LOGIN}, ".login.password", "SecretStr"),
        (Masked, Masked(card="4111111111111111"), ".card", "str"),
        (Any, {1: "number", "1": "text"}, "", "2 entries"),
        (dict[int | str, str], {1: "number", "1": "text"}, "", "2 entries"),
        (dict[str, dict[str, int]], {"a": {1: 1, "1": 2}}, ".a", "2 entries"),
        (Sheet, Sheet({1: 1, "1": 2}), ".rows", "2 entries"),  # type: ignore[dict-item]
        (Row, {"a": 1, "b": 2}, "", "2 entries"),
        (Animal, Dog("rex", "pug"), "", "breed"),
        (list[Sheet], [SignedSheet({}, "ann")], "[0]", "by"),
        (Any, [b"raw"], "[0]", "base64"),
    ],
)
def test_a_value_that_would_arrive_as_another_is_refused(
    annotation: Any, value: Any, path: str, reason: str
) -> None:
    with pytest.raises(InvalidPayload) as submitted:
        codec(annotation).encode((value,), {})
    with pytest.raises(InvalidPayload) as returned:
        ValueCodec.of(annotation).encode(value)

    for caught, where in ((submitted, "value"), (returned, "result")):
        assert caught.value.what.startswith(f"{where}{path} ")
        assert reason in caught.value.what
        assert "correct horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Whole, WHOLE),
        (Any, {"login": WHOLE, "pair": (1, 2), 3: "number"}),
        (dict[int, Sheet], {1: Sheet({"a": 1})}),
        (Dog, Dog("rex", "pug")),
        (Annotated[int, msgspec.Meta(gt=0), pydantic.Field(description="pieces")], 1),
    ],
)
def test_a_value_that_arrives_whole_passes(annotation: Any, value: Any) -> None:
    assert codec(annotation).encode((value,), {})


def test_types_that_lose_nothing_are_not_compared() -> None:
    for annotation in (
        int,
        str,
        float | None,
        list[str],
        tuple[int, bytes],
        Annotated[int, msgspec.Meta(ge=0)],
    ):
        assert look_for(annotation) is None


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, pydantic.Field(gt=0)],
        pydantic.PositiveInt,
        list[Annotated[str, annotated_types.MinLen(1)]],
        Amount,
    ],
)
def test_a_condition_that_nothing_would_look_at_is_refused_at_the_declaration(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match=r"msgspec\.Meta"):
        codec(annotation)
