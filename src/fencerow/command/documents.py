"""What programs read: records as plain data, with instants as ISO 8601 in UTC. docs/cli.md has the shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from fencerow.command.times import iso

INSTANT = "_us"


def plain(value: Any) -> Any:
    """Lists, dicts, text, numbers, true, false and None.

    A field of a record that ends in `_us` is an instant: `ended_at_us` becomes `ended_at`, as ISO 8601. Keys of a dict
    stay as they are, for they may be a user's.
    """
    if isinstance(value, msgspec.Struct):
        return instants((name, getattr(value, name)) for name in value.__struct_fields__)
    if is_dataclass(value) and not isinstance(value, type):
        return instants((each.name, getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return msgspec.to_builtins(value)


def instants(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Names of ours with their values, such as the fields of a record."""
    return dict(map(_told, pairs))


def _told(pair: tuple[str, Any]) -> tuple[str, Any]:
    name, value = pair
    if name.endswith(INSTANT) and (value is None or isinstance(value, int)):
        return name.removesuffix(INSTANT), iso(value)
    if (
        name.endswith(INSTANT)
        and isinstance(value, list | tuple)
        and all(isinstance(each, int) for each in value)
    ):
        return name.removesuffix(INSTANT), [iso(each) for each in value]
    return name, plain(value)
