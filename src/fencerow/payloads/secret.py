"""What is declared as secret, `Annotated[str, Secret]` or a type such as pydantic's SecretStr: where it stands in data.

It is hidden where people look. The row keeps it whole, and the handler gets it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

DEPTH_MAX = 64


class Secret:
    """Marks a type as secret: `token: Annotated[str, Secret]`.

    Use it for a parameter of a job, its result, or a field of a dataclass, TypedDict, msgspec Struct or pydantic model
    in them. What stands there is hidden in the dashboard, and by `fencerow jobs show -A`, at any depth. It is stored as
    it is: whoever reads the table reads it. To keep it from them, seal the payload.
    """


@dataclass(eq=False, slots=True)
class Secrets:
    """A type as its data are looked through. It may lead back to itself, as the type may.

    `fields` by their names in JSON; `each`: the items of a list, or the values of a dict; `options`: types that it may
    be instead.
    """

    is_secret: bool = False
    fields: dict[str, Secrets] = field(default_factory=dict)
    each: Secrets | None = None
    options: list[Secrets] = field(default_factory=list)


def secrets_in(annotation: Any) -> Secrets:
    """Where secrets stand in data of this type. A type that cannot be looked into has none."""
    return _of(annotation, {})


def hide(data: Any, secrets: Secrets, hidden: Callable[[Any], Any]) -> Any:
    """A copy of the data with `hidden(value)` in the place of each secret. What is null stays so."""
    return _hide(data, _opened([secrets]), hidden, 0)


def _hide(data: Any, found: list[Secrets], hidden: Callable[[Any], Any], depth: int) -> Any:
    if not found or data is None:
        return data
    if depth > DEPTH_MAX or any(each.is_secret for each in found):
        return hidden(data)
    rest = [each.each for each in found if each.each is not None]
    if isinstance(data, Mapping):
        entries: Mapping[Any, Any] = data
        return {
            name: _hide(value, _opened([*rest, *_named(found, name)]), hidden, depth + 1)
            for name, value in entries.items()
        }
    if isinstance(data, list | tuple):
        items: Iterable[Any] = data
        return [_hide(each, _opened(rest), hidden, depth + 1) for each in items]
    return data


def _named(found: list[Secrets], name: Any) -> list[Secrets]:
    return [each.fields[name] for each in found if name in each.fields]


def _opened(found: list[Secrets]) -> list[Secrets]:
    """These, and all that they may be instead."""
    opened: list[Secrets] = []
    pending = list(found)
    while pending:
        each = pending.pop()
        if not any(each is other for other in opened):
            opened.append(each)
            pending += each.options
    return opened


def _of(kind: Any, known: dict[int, tuple[Any, Secrets]]) -> Secrets:
    if id(kind) not in known:
        made = Secrets()
        known[id(kind)] = (kind, made)  # the type is kept, so that no other one gets its number
        _fill(made, kind, known)
    return known[id(kind)][1]


def _fill(made: Secrets, kind: Any, known: dict[int, tuple[Any, Secrets]]) -> None:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    plain = origin or kind
    if origin is typing.Annotated:
        made.is_secret = _is_marked(kind.__metadata__)
        made.options.append(_of(kind.__origin__, known))
    elif isinstance(plain, type) and hasattr(plain, "get_secret_value"):
        made.is_secret = True
    elif (named := getattr(kind, "__value__", None) or getattr(kind, "__supertype__", None)) is not None:
        made.options.append(_of(named, known))
    elif origin in (typing.Union, types.UnionType):
        made.options += [_of(each, known) for each in args]
    elif isinstance(plain, type) and (fields := _fields(plain)):
        given = dict(zip(getattr(plain, "__parameters__", ()), args, strict=False))
        for name, hint in fields:
            made.fields[name] = _of(_filled_in(hint, given), known)
    elif isinstance(plain, type) and issubclass(plain, Mapping):
        made.each = _of(args[-1], known) if args else None
    elif args:
        made.each = Secrets(options=[_of(each, known) for each in args if each is not Ellipsis])


def _is_marked(metadata: Iterable[Any]) -> bool:
    return any(each is Secret or isinstance(each, Secret) for each in metadata)


def _filled_in(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The hint of a generic's field, with the types that the generic was given."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, Any)
    wanted = getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(each, Any) for each in wanted)] if wanted and given else hint


def _fields(kind: type) -> list[tuple[str, Any]]:
    """The fields of a class by all names that JSON may have for them, with their types."""
    models: Any = getattr(kind, "model_fields", None)
    if hasattr(kind, "model_dump") and isinstance(models, Mapping):
        return [(name, _model_hint(info)) for own, info in models.items() for name in _model_names(own, info)]
    is_record = (
        dataclasses.is_dataclass(kind) or hasattr(kind, "__total__") or hasattr(kind, "__attrs_attrs__")
    )
    if not (is_record or issubclass(kind, msgspec.Struct)):
        return []
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:  # msgspec has found them all by itself, or has said what it lacks
        return []
    written = dict(zip(*_struct_names(kind), strict=True)) if issubclass(kind, msgspec.Struct) else {}
    return [(written.get(name, name), hint) for name, hint in hints.items()]


def _struct_names(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return kind.__struct_fields__, kind.__struct_encode_fields__


def _model_names(own: str, info: Any) -> set[str]:
    others = (getattr(info, each, None) for each in ("alias", "serialization_alias", "validation_alias"))
    return {own, *(each for each in others if isinstance(each, str))}


def _model_hint(info: Any) -> Any:
    """pydantic keeps what stands in `Annotated` apart from the type."""
    return typing.Annotated[info.annotation, Secret] if _is_marked(info.metadata) else info.annotation
