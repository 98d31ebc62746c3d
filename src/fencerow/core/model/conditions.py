"""Conditions of pydantic's in `Annotated`, which hold inside of its models and nowhere else."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from fencerow.core.model.hooks import is_model

LIBRARIES = ("pydantic", "pydantic_core", "annotated_types")
NO_CONDITION = ("DocInfo", "WithJsonSchema", "Discriminator", "Tag")


def unheeded_conditions(annotation: Any) -> Iterator[Any]:
    """What a type demands of its values that only pydantic would look at."""
    pending: list[Any] = [annotation]
    seen: list[Any] = []
    while pending:
        kind = pending.pop()
        if any(kind is each for each in seen) or is_model(kind):
            continue
        seen.append(kind)
        if typing.get_origin(kind) is typing.Annotated:
            yield from (each for each in kind.__metadata__ if _is_unheeded(each))
            pending.append(kind.__origin__)
        else:
            pending.extend((*typing.get_args(kind), *_field_types(kind)))
        pending.append(getattr(kind, "__value__", None))  # what a `type` statement names


def _is_unheeded(condition: Any) -> bool:
    kind = type(condition)
    if kind.__module__.partition(".")[0] not in LIBRARIES or kind.__name__ in NO_CONDITION:
        return False
    # A Field may describe and no more.
    return bool(condition.metadata) if kind.__name__ == "FieldInfo" else True


def _field_types(kind: Any) -> list[Any]:
    """The types of the fields of a class whose values msgspec makes. pydantic's dataclasses look at their own."""
    made = isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or hasattr(kind, "__total__")
    )
    if not made or hasattr(kind, "__pydantic_validator__"):
        return []
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except Exception:  # msgspec has found them all by itself, or has said what it lacks
        return []
