"""What JSON loses though it can be written and read: entries that become one, masked secrets, fields of a subclass.

Both ways succeed, so only the value that arrives tells. It is compared with the one that was passed where the declared
type leaves room for a loss; between numbers, texts, and lists of them nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.faults import Fault, path_step
from fencerow.core.model.hooks import is_model, record_fields
from fencerow.core.model.signature import type_nodes

ROWS = (list, tuple)
PLAIN = (str, int, float, bool, type(None))
BYTES = (bytes, bytearray, memoryview)
ABSENT: Any = object()
# What JSON has a form for that no other value of the type has.
EXACT = (
    msgspec.inspect.NoneType,
    msgspec.inspect.BoolType,
    msgspec.inspect.IntType,
    msgspec.inspect.FloatType,
    msgspec.inspect.StrType,
    msgspec.inspect.BytesType,
    msgspec.inspect.ByteArrayType,
    msgspec.inspect.DateTimeType,
    msgspec.inspect.DateType,
    msgspec.inspect.TimeType,
    msgspec.inspect.TimeDeltaType,
    msgspec.inspect.UUIDType,
    msgspec.inspect.DecimalType,
    msgspec.inspect.EnumType,
    msgspec.inspect.LiteralType,
    msgspec.inspect.UnionType,
    msgspec.inspect.ListType,
    msgspec.inspect.VarTupleType,
    msgspec.inspect.TupleType,
    msgspec.inspect.Metadata,
)


Look = Callable[[Any, Any], Fault | None]


def look_for(annotation: Any) -> Look | None:
    """How to find what a value of this type lost on the way, from the value and what arrived; None: nothing can be."""
    doubtful = [node for node in type_nodes(annotation) if not isinstance(node, EXACT)]
    if not doubtful:
        return None
    # A class of the user's may call two objects equal that differ.
    customs = any(isinstance(node, msgspec.inspect.CustomType) for node in doubtful)
    return loss if customs else loss_if_unequal


def loss_if_unequal(value: Any, arrived: Any) -> Fault | None:
    """`loss`, and much faster for what arrived as it was."""
    try:
        same = bool(value == arrived)
    except FencerowError:
        raise  # the handler that submits is told to end just now
    except Exception:  # a comparison of the user's own type
        same = False
    return None if same else loss(value, arrived)


def loss(value: Any, arrived: Any, path: str = "") -> Fault | None:
    """The first thing in `value` that `arrived` lacks or has otherwise; None: it arrived.

    Where no type says otherwise it is no loss that a tuple arrives as a list, or a dict's key as text.
    """
    if type(value) in PLAIN and value == arrived:
        return None
    if isinstance(value, dict):
        return _entry_lost(value, arrived, path) if isinstance(arrived, dict) else None
    if isinstance(value, ROWS):
        return _item_lost(value, arrived, path) if isinstance(arrived, ROWS) else None
    fields = _fields(value)
    if fields is not None:
        return _field_lost(value, fields, arrived, path)
    return _leaf_lost(value, arrived, path)


def _entry_lost(value: dict[Any, Any], arrived: dict[Any, Any], path: str) -> Fault | None:
    if len(arrived) != len(value):
        return Fault(
            path,
            f"has {len(value)} entries, of which {len(arrived)} arrive: keys are the same in JSON, or not declared",
            "use keys of one type that differ as text, and only those that the type declares",
        )
    for key, part in value.items():
        found = loss(part, arrived.get(key, ABSENT), path + path_step(key))
        if found:
            return found
    return None


def _item_lost(value: Any, arrived: Any, path: str) -> Fault | None:
    for position, (one, other) in enumerate(zip(value, arrived, strict=False)):
        found = loss(one, other, f"{path}[{position}]")
        if found:
            return found
    return None


def _field_lost(value: Any, fields: Iterable[tuple[str, str]], arrived: Any, path: str) -> Fault | None:
    lacking = [] if type(arrived) is type(value) else _lacking(fields, arrived)
    if lacking:
        return Fault(
            path,
            f"is a {type(value).__name__} and arrives as a {type(arrived).__name__}, without {lacking[0][:60]!r}",
            "declare the type that is passed, or a union of the types",
        )
    in_dict = isinstance(arrived, dict)
    for name, written in fields:
        one = getattr(value, name, ABSENT)
        other = arrived.get(written, ABSENT) if in_dict else getattr(arrived, name, ABSENT)
        found = None if one is other else loss(one, other, f"{path}.{name}")
        if found:
            return found
    return None


def _lacking(fields: Iterable[tuple[str, str]], arrived: Any) -> list[str]:
    there = _fields(arrived)
    known = None if there is None else {name for name, _ in there}
    return [] if known is None else [name for name, _ in fields if name not in known]


def _leaf_lost(value: Any, arrived: Any, path: str) -> Fault | None:
    if value is ABSENT or arrived is ABSENT:  # left out, or under a name that nobody here knows
        return None
    if isinstance(value, BYTES) and isinstance(arrived, str):
        return Fault(path, "is bytes and arrives as base64 text", "declare bytes, or pass text")
    if hasattr(value, "get_secret_value"):
        # Where no type is declared, the mask arrives as a text.
        same = _revealed(value) == _revealed(arrived)
    else:
        # A type without an equality of its own cannot say.
        same = type(value) is not type(arrived) or not _compares(type(value)) or value == arrived
    if same:
        return None
    return Fault(
        path,
        f"is a {type(value).__name__} and arrives as another one: its own JSON is not the whole value",
        "pass an id under which the handler finds it, or give the field a serializer that writes it whole",
    )


def _compares(kind: Any) -> bool:
    return kind.__eq__ is not object.__eq__


def _revealed(value: Any) -> Any:
    return value.get_secret_value() if hasattr(value, "get_secret_value") else value


def _fields(value: Any) -> Iterable[tuple[str, str]] | None:
    """The fields of a value, each with the name that JSON has for it; None: it is no record."""
    kind: Any = type(value)
    declared = _declared(kind)
    extra = getattr(value, "model_extra", None) if declared else None
    return (*declared, *((name, name) for name in extra)) if declared and extra else declared


@lru_cache(maxsize=1024)
def _declared(kind: Any) -> tuple[tuple[str, str], ...] | None:
    found = record_fields(kind)
    if found is None and is_model(kind) and isinstance(getattr(kind, "model_fields", None), dict):
        return tuple((name, _alias(name, each)) for name, each in kind.model_fields.items())
    return found


def _alias(name: str, field: Any) -> str:
    return getattr(field, "serialization_alias", None) or getattr(field, "alias", None) or name
