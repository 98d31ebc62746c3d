"""What is known of users' classes: models with pydantic's methods, which msgspec does not know, and fields of records.

pydantic is met by its two methods and never imported.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec


def is_model(kind: Any) -> bool:
    """Whether a class brings pydantic's way of checking and dumping itself."""
    return isinstance(kind, type) and hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def record_fields(kind: Any) -> tuple[tuple[str, str], ...] | None:
    """The fields of a record that msgspec knows by itself, each with the name that JSON has for it, or None."""
    if issubclass(kind, msgspec.Struct):
        return tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    if dataclasses.is_dataclass(kind):
        return tuple((each.name, each.name) for each in dataclasses.fields(kind))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple((each.name, each.name) for each in kind.__attrs_attrs__)
    return None


def to_plain(value: Any) -> Any:
    """What to encode in place of a value msgspec does not know.

    A model is dumped in its own JSON form (`mode="json"`), because only that form is sure to be read back by
    the same model: bytes, for one, are written differently by msgspec and pydantic.
    """
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise NotImplementedError


def from_plain(kind: type[Any], plain: Any) -> Any:
    """Build a value of a type msgspec does not know from the decoded JSON.

    Raises:
        ValueError: it does not fit. The message names fields and reasons, never the values.
    """
    if kind is object:
        return plain
    if not is_model(kind):
        raise NotImplementedError
    try:
        return _validated(kind, plain)
    except ValueError as error:
        raise ValueError(_reasons(error)) from None


def _validated(model: Any, plain: Any) -> Any:
    validate_json = getattr(model, "model_validate_json", None)
    if validate_json is None:
        return model.model_validate(plain)
    # From JSON even a strict model accepts what JSON must write as text, a datetime for one.
    return validate_json(msgspec.json.encode(plain))


def _reasons(error: ValueError) -> str:
    listing: Any = getattr(error, "errors", None)
    if not callable(listing):
        return type(error).__name__
    try:
        rows: Any = listing(include_input=False, include_url=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows[:5])
    except Exception:
        return type(error).__name__
