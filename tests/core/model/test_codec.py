"""Arguments and results: what goes in comes out, and what could not come out is refused at the door."""

from __future__ import annotations

import enum
import json
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.packed import fingerprint
from fencerow.core.model.value import ValueCodec
from fencerow.errors import (
    DeclarationError,
    InvalidArguments,
    InvalidPayload,
    MalformedPayload,
    PayloadTooLarge,
)

if typing.TYPE_CHECKING:
    from nowhere import Job  # type: ignore[import-not-found]


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Item:
    price: float
    name: str = "x"


class Struct(msgspec.Struct):
    when: datetime
    items: list[Item]


class Row(TypedDict):
    a: int


class Point(NamedTuple):
    x: int
    y: int


class Duck:
    """Has pydantic's methods and no more."""

    def __init__(self, value: float | None) -> None:
        self.value = value

    def model_dump(self, **_: object) -> dict[str, Any]:
        return {"value": self.value}

    @classmethod
    def model_validate(cls, plain: Any) -> Duck:
        if not isinstance(plain["value"], (int, float, type(None))):
            raise ValueError(f"secret {plain['value']}")
        return cls(plain["value"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duck) and other.value == self.value


def handler(job: Job, path: str, pages: int = 1, *, items: list[Item] | None = None) -> dict[str, int]:
    return {path: pages}


CODEC = ArgumentsCodec.of(handler, "job")


def untyped(value):  # type: ignore[no-untyped-def]
    return value


UNTYPED = ArgumentsCodec.of(untyped, None)


def one(annotation: Any) -> ArgumentsCodec:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation
    return ArgumentsCodec.of(take, None)


def test_a_call_is_kept_by_parameter_name_without_defaults() -> None:
    raw = CODEC.encode(("a.pdf",), {"items": [Item(1.5)]})

    assert raw == b'{"path":"a.pdf","items":[{"price":1.5,"name":"x"}]}'
    assert CODEC.decode(raw) == ((), {"path": "a.pdf", "items": [Item(1.5)]})


def test_a_type_hint_that_only_the_job_needs_is_never_resolved() -> None:
    assert "job" not in CODEC.parameters


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 2**64 - 1),
        (int, -(2**63)),
        (float, -0.0),
        (float, 1e22),
        (Any, {"b": 1, "a": [None, True, "é"]}),
        (object, {"a": 1}),
        (datetime, datetime(2026, 11, 21, 9, 30, tzinfo=timezone(timedelta(hours=2)))),
        (date, date(2026, 11, 21)),
        (timedelta, timedelta(hours=3)),
        (UUID, UUID(int=7)),
        (Decimal, Decimal("1.10")),
        (Colour, Colour.RED),
        (Literal["a", "b"], "b"),
        (bytes, b"\x00\xff"),
        (set[str], {"a", "b"}),
        (frozenset[int], frozenset({1})),
        (tuple[int, str], (1, "a")),
        (dict[int, float], {1: 2.5}),
        (Row, {"a": 1}),
        (Point, Point(1, 2)),
        (Item | None, None),
        (list[Item], [Item(1.0)]),
        (Struct, Struct(datetime(2026, 1, 1), [Item(2.0)])),
        (Annotated[int, msgspec.Meta(ge=0)], 3),
        (list[Duck], [Duck(1.5), Duck(None)]),
        (dict[str, Duck | None], {"a": Duck(2), "b": None}),
    ],
)
def test_what_goes_in_comes_out(annotation: Any, value: Any) -> None:
    codec, result = one(annotation), ValueCodec.of(annotation)

    assert codec.decode(codec.encode((value,), {})) == ((), {"value": value})
    assert result.decode(result.encode(value)) == value


def test_plain_subclasses_are_kept_as_the_plain_type() -> None:
    class Shout(str): ...

    class Ratio(float): ...

    assert UNTYPED.encode(([Shout("a"), Ratio(0.5)],), {}) == b'{"value":["a",0.5]}'


def test_a_set_has_the_same_bytes_in_every_process() -> None:
    assert one(set[str]).encode(({"c", "a", "b"},), {}) == b'{"value":["a","b","c"]}'


def test_the_order_of_a_dict_is_kept() -> None:
    assert UNTYPED.encode(({"b": 1, "a": 2},), {}) == b'{"value":{"b":1,"a":2}}'


def test_no_result_is_null() -> None:
    codec = ValueCodec.of(None)

    assert codec.encode(None) == b"null"
    assert codec.decode(b"null") is None


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (math.nan, "value", "NaN"),
        ([{"price": math.inf}], "value[0].price", "Infinity"),
        ([0, {"a b": [-math.inf]}], "value[1]['a b'][0]", "-Infinity"),
        (Item(math.nan), "value.price", "NaN"),
        (Struct(datetime(2026, 1, 1), [Item(1.0), Item(math.nan)]), "value.items[1].price", "NaN"),
        (Duck(math.nan), "value.value", "NaN"),
        ([None, math.nan], "value[1]", "NaN"),
        ({math.nan: 1}, "value", "key"),
        ({math.inf: 1}, "value", "key"),
        ("a\0", "value", "NUL at position 1"),
        ({"a\0b": 1}, "value", "NUL"),
        ({"a": "\ud800"}, "value.a", "lone surrogate U+D800"),
        ({"\udfff": 1}, "value", "lone surrogate"),
        ({"a": [2**64]}, "value.a[0]", "beyond 64 bits"),
        (-(2**63) - 1, "value", "beyond 64 bits"),
        ([object()], "value[0]", "unsupported type builtins.object"),
        ({"a": {(1, 2): 3}}, "value.a", "key of type tuple"),
        ({None: 1}, "value", "key of type NoneType"),
        ({"f": print}, "value.f", "unsupported type"),
    ],
)
def test_what_json_cannot_keep_is_refused_with_its_path(value: Any, path: str, reason: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        UNTYPED.encode((value,), {})

    assert caught.value.what.startswith(path + " ")
    assert reason in caught.value.what
    assert caught.value.fix


def test_text_that_only_looks_like_a_fault_passes() -> None:
    for value in [
        "null",
        "\\u0000",
        'nan":',
        None,
        "1" * 40,
        {"nan": 1},
        {"x": {"inf": 2}},
        123456789012345680000.0,
    ]:
        assert UNTYPED.decode(UNTYPED.encode((value,), {})) == ((), {"value": value})


def test_cycles_are_refused() -> None:
    ring: list[Any] = [1]
    ring.append({"a": ring})

    with pytest.raises(InvalidPayload, match=r"value\[1\]\.a contains itself"):
        UNTYPED.encode((ring,), {})


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value, "]"]
    return value


def test_depth_is_limited_to_64_levels() -> None:
    UNTYPED.encode((nested(64),), {})
    for levels in (65, 66, 500, 100_000):
        with pytest.raises(InvalidPayload, match="deeper than 64"):
            UNTYPED.encode((nested(levels),), {})


def test_brackets_inside_text_count_for_nothing() -> None:
    value = ["[" * 200, '"' + "{" * 100, "\\"]

    assert UNTYPED.decode(UNTYPED.encode((value,), {})) == ((), {"value": value})


def test_wide_data_is_not_deep_data() -> None:
    UNTYPED.encode(([{"a": [n]} for n in range(500)],), {})


def test_raw_json_is_refused_where_it_cannot_be_checked() -> None:
    for raw in (b'"\\u0000"', b"1" * 30, b"nan", b"{", b'"\\ud800"'):
        with pytest.raises((InvalidPayload, InvalidArguments)):
            UNTYPED.encode(([msgspec.Raw(raw)],), {})


NUMBERS = st.floats() | st.integers()
TEXTS = st.text(st.characters(codec=None) | st.sampled_from('\0\ud800[{"\\'))
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner) | st.builds(Duck, st.floats()),
    max_leaves=12,
)


@settings(deadline=None, max_examples=120)
@given(ANYTHING)
def test_every_value_is_either_refused_or_comes_back_equal(value: Any) -> None:
    try:
        raw = UNTYPED.encode((value,), {})
    except InvalidPayload:
        assert broken(value)
        return

    assert not broken(value)
    json.loads(raw, parse_constant=pytest.fail)
    assert UNTYPED.decode(raw) == ((), {"value": undressed(value)})


@settings(deadline=None, max_examples=60)
@given(st.lists(st.builds(Item, st.floats(), TEXTS) | st.none()))
def test_nothing_slips_through_a_typed_parameter(value: list[Item | None]) -> None:
    codec = one(list[Item | None])
    try:
        raw = codec.encode((value,), {})
    except InvalidPayload:
        assert any(item and (broken(item.price) or broken(item.name)) for item in value)
        return

    assert codec.decode(raw) == ((), {"value": value})


@settings(deadline=None, max_examples=60)
@given(st.binary() | st.text().map(str.encode))
def test_stored_bytes_of_any_kind_never_crash_a_worker(raw: bytes) -> None:
    try:
        CODEC.decode(raw)
    except MalformedPayload:
        return


def broken(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        return any(letter == "\0" or 0xD800 <= ord(letter) <= 0xDFFF for letter in value)
    if isinstance(value, int):
        return not -(2**63) <= value < 2**64
    if isinstance(value, Duck):
        return broken(value.value)
    if isinstance(value, dict):
        return any(broken(each) for each in [*value, *value.values()])
    return isinstance(value, list) and any(broken(each) for each in value)


def undressed(value: Any) -> Any:
    if isinstance(value, Duck):
        return {"value": value.value}
    if isinstance(value, list):
        return [undressed(each) for each in value]
    if isinstance(value, dict):
        return {key: undressed(each) for key, each in value.items()}
    return value


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'path'"),
        (("a", 1, 2), {}, "too many positional"),
        (("a",), {"page": 1}, "unexpected keyword argument 'page'"),
        (("a",), {"job": 1}, "unexpected keyword argument 'job'"),
        (("a",), {"path": "b"}, "multiple values for argument 'path'"),
        (("a", "1"), {}, "argument pages of handler: Expected `int`, got `str`"),
        (("a", 1.0), {}, "argument pages of handler"),
        (("a",), {"items": [{"price": "x"}]}, r"argument items\[0\].price of handler"),
        ((b"a",), {}, "got bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        CODEC.encode(args, kwargs)


def test_arguments_beyond_the_limit_are_refused() -> None:
    codec = ArgumentsCodec.of(handler, "job", payload_bytes_max=100)

    with pytest.raises(PayloadTooLarge, match=r"takes 111 bytes\n  at most 100"):
        codec.encode(("x" * 100,), {})
    with pytest.raises(PayloadTooLarge):
        ValueCodec.of(str, payload_bytes_max=10).encode("x" * 9)


def test_positional_only_parameters_come_back_in_place() -> None:
    def act(a: int, b: int = 2, /, c: int = 3) -> None: ...

    codec = ArgumentsCodec.of(act, None)

    assert codec.decode(codec.encode((1,), {"c": 4})) == ((1, 2), {"c": 4})


def test_the_job_may_stand_anywhere() -> None:
    def act(a: int, job: object, b: int) -> None: ...

    assert ArgumentsCodec.of(act, "job").encode((1, 2), {}) == b'{"a":1,"b":2}'


def test_methods_and_callable_objects_work() -> None:
    class Act:
        def run(self, n: int) -> None: ...

        def __call__(self, item: Item) -> None: ...

    assert ArgumentsCodec.of(Act().run, None).encode((1,), {}) == b'{"n":1}'
    assert ArgumentsCodec.of(Act(), None).parameters["item"].annotation is Item


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[]", "not a JSON object"),
        (b"{", "not a JSON object"),
        (b'{"pages":1}', "'path' is missing"),
        (b'{"path":"a","old":1}', "no parameter 'old'"),
        (b'{"path":"a","pages":"hunter2"}', "pages: Expected `int`, got `str`"),
        (b'{"path":"a","items":[{"price":"hunter2"}]}', r"items\[0\].price: Expected"),
    ],
)
def test_stored_bytes_that_do_not_fit_are_named_and_not_shown(raw: bytes, message: str) -> None:
    with pytest.raises(MalformedPayload, match=message) as caught:
        CODEC.decode(raw)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("annotation", "raw"), [(Colour, b'"hunter2"'), (Duck, b'{"value":"hunter2"}')])
def test_a_value_never_shows_in_the_message(annotation: Any, raw: bytes) -> None:
    with pytest.raises(MalformedPayload) as caught:
        one(annotation).decode(b'{"value":' + raw + b"}")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(MalformedPayload) as caught:
        ValueCodec.of(annotation).decode(raw)
    assert "hunter2" not in str(caught.value)


def test_a_result_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidPayload, match=r"result\[0\]: Expected `int`, got `str`"):
        ValueCodec.of(list[int]).encode(["a"])


class Session:
    pass


def takes_many(*paths: str) -> None: ...


def takes_named(**paths: str) -> None: ...


def takes_session(session: Session) -> None: ...


def takes_nested(sessions: list[Session | None]) -> None: ...


def takes_unknown(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def takes_callback(callback: Callable[[], None]) -> None: ...


def takes_two(value: list[int] | list[str]) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (takes_many, "collects any number"),
        (takes_named, "collects any number"),
        (takes_session, "Session cannot be written as JSON"),
        (takes_nested, "Session cannot be written as JSON"),
        (takes_unknown, "module level"),
        (takes_callback, "cannot be written"),
        (takes_two, "may not contain more than one array-like"),
    ],
)
def test_a_handler_that_cannot_work_is_refused_when_declared(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        ArgumentsCodec.of(function, None)


def test_the_job_parameter_must_exist_and_be_named() -> None:
    def first(job: object, /, a: int) -> None: ...

    with pytest.raises(DeclarationError, match="positional-only"):
        ArgumentsCodec.of(first, "job")
    with pytest.raises(DeclarationError, match="no parameter 'job'"):
        ArgumentsCodec.of(takes_two, "job")


def test_a_fingerprint_tells_name_from_payload() -> None:
    assert fingerprint("a", b"{}") == fingerprint("a", b"{}")
    assert len({fingerprint("a", b"{}"), fingerprint("b", b"{}"), fingerprint("a", b"{ }")}) == 3
    assert fingerprint("a", b"{}").startswith("6d8a39a291dba279")


def test_pydantic_models_keep_their_types() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        model_config = {"strict": True, "extra": "forbid"}
        when: datetime
        blob: bytes = b"x"
        ratio: float | None = None
        alias: int = pydantic.Field(default=1, alias="theAlias")

        @pydantic.computed_field  # type: ignore[untyped-decorator]
        def twice(self) -> int:
            return 2

    Inner.model_rebuild(_types_namespace={"datetime": datetime})
    codec = one(dict[str, list[Inner]])
    value = {"a": [Inner(when=datetime(2026, 1, 1), theAlias=5)]}

    assert codec.decode(codec.encode((value,), {})) == ((), {"value": value})
    with pytest.raises(InvalidPayload, match=r"value\.a\[0\]\.ratio is NaN"):
        codec.encode(({"a": [Inner(when=datetime(2026, 1, 1), ratio=math.nan)]},), {})
    with pytest.raises(MalformedPayload, match="valid datetime") as caught:
        codec.decode(b'{"value":{"a":[{"when":"hunter2"}]}}')
    assert "hunter2" not in str(caught.value)
