"""The parameters of a handler, with their type hints resolved."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CellType, SimpleNamespace
from typing import Any

import msgspec

from fencerow.core.errors import DeclarationError
from fencerow.core.model.conditions import unheeded_conditions
from fencerow.core.model.hooks import is_model
from fencerow.db.text import said_of

STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter a caller may pass. `default` is `inspect.Parameter.empty` when it must be passed."""

    name: str
    annotation: Any
    kind: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call without it fails."""
        return self.default is inspect.Parameter.empty

    @property
    def positional_only(self) -> bool:
        """Whether it cannot be passed by name."""
        return self.kind is inspect.Parameter.POSITIONAL_ONLY


def parameters_of(function: Callable[..., Any], job_parameter: str | None) -> tuple[Parameter, ...]:
    """The parameters of `function` that a caller passes: all but the one that receives the job.

    Raises:
        DeclarationError: a parameter kind or type hint that cannot work; change the handler.
    """
    declared = dict(inspect.signature(function).parameters)
    if job_parameter is not None:
        _take_job(function, declared, job_parameter)
    return tuple(_parameter(function, parameter) for parameter in declared.values())


def return_annotation(function: Callable[..., Any]) -> Any:
    """The resolved type of the result; Any where the handler does not say.

    Raises:
        DeclarationError: the hint names something that cannot be found.
    """
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        return Any
    return _resolved(function, "return", annotation)


def parameter_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """The resolved type of each parameter, whether or not it can be stored; Any where the function does not say.

    Raises:
        DeclarationError: a hint names something that cannot be found.
    """
    return {
        name: Any if each.annotation is each.empty else _resolved(function, name, each.annotation)
        for name, each in inspect.signature(function).parameters.items()
    }


def check_type(annotation: Any, whose: str) -> None:
    """Make sure that values of this type can be written as JSON and read back.

    Raises:
        DeclarationError: a type inside it is unknown both to msgspec and as a pydantic model, or has a condition
            that only pydantic would look at.
    """
    try:
        msgspec.json.Decoder(annotation)
        strangers = [kind for kind in _custom_types(annotation) if kind is not object and not is_model(kind)]
    except Exception as error:
        raise DeclarationError(
            f"{whose} has the type {type_shown(annotation)}",
            f"it cannot be read from JSON: {error}"[:400],
            "use a simpler type, or Any",
        ) from None
    if strangers:
        raise DeclarationError(
            f"{whose} has the type {type_shown(annotation)}",
            f"{type_shown(strangers[0])} cannot be written as JSON",
            "pass an id or plain data, a dataclass, a msgspec Struct or a pydantic model instead",
        )
    unheeded = next(unheeded_conditions(annotation), None)
    if unheeded is not None:
        raise DeclarationError(
            f"{whose} has the type {type_shown(annotation)}",
            f"nothing would look at {unheeded!r:.100} outside of a pydantic model",
            "write msgspec.Meta(gt=0) and the like in Annotated, or put the value into a pydantic model",
        )


def holds_sets(annotation: Any) -> bool:
    """Whether a set is somewhere in the type. Its order differs from process to process."""
    return any(
        isinstance(node, (msgspec.inspect.SetType, msgspec.inspect.FrozenSetType))
        for node in type_nodes(annotation)
    )


def name_of(function: Callable[..., Any]) -> str:
    """The function's name for messages."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def _take_job(
    function: Callable[..., Any], declared: dict[str, inspect.Parameter], job_parameter: str
) -> None:
    parameter = declared.pop(job_parameter, None)
    if parameter is None:
        raise DeclarationError(
            f"{name_of(function)} has no parameter {job_parameter!r}", "it should receive the job", "add it"
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise DeclarationError(
            f"parameter {job_parameter!r} of {name_of(function)} is positional-only",
            "the job is passed by name",
            "move the '/' before it",
        )


def _parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> Parameter:
    whose = f"parameter {parameter.name!r} of {name_of(function)}"
    if parameter.kind in STARRED:
        raise DeclarationError(
            f"{whose} collects any number of arguments",
            "arguments are stored by the name of their parameter",
            "name each parameter, or take one list or dict; if it is the wrapper of a decorator of yours, write "
            "@functools.wraps(function) above it",
        )
    annotation = Any
    if parameter.annotation is not inspect.Parameter.empty:
        annotation = _resolved(function, parameter.name, parameter.annotation)
    check_type(annotation, whose)
    return Parameter(parameter.name, annotation, parameter.kind, parameter.default)


def _resolved(function: Callable[..., Any], name: str, annotation: Any) -> Any:
    # One hint at a time: a hint for another parameter, or for the job, may exist for type checkers only.
    holder: Any = SimpleNamespace(__annotations__={name: annotation})
    try:
        hints = typing.get_type_hints(holder, _globals(function), _closure(function), include_extras=True)
    except Exception as error:
        raise DeclarationError(
            f"the type hint {annotation!r} for {name!r} of {name_of(function)} cannot be resolved",
            said_of(error),
            "define or import the type at module level, outside 'if TYPE_CHECKING'",
        ) from None
    return hints[name]


def _plain_function(function: Any) -> Any:
    function = inspect.unwrap(getattr(function, "func", function))
    if not hasattr(function, "__globals__") and not inspect.ismethod(function):
        return getattr(type(function), "__call__", function)  # noqa: B004 - the function itself is wanted
    return getattr(function, "__func__", function)


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = getattr(_plain_function(function), "__globals__", {})
    return found


def _closure(function: Callable[..., Any]) -> Mapping[str, Any]:
    plain = _plain_function(function)
    cells = getattr(plain, "__closure__", None) or ()
    return dict(_filled(zip(plain.__code__.co_freevars, cells, strict=True))) if cells else {}


def _filled(cells: Iterable[tuple[str, CellType]]) -> Iterator[tuple[str, Any]]:
    """What the names stand for. A job that names itself does not stand for anything before it is declared."""
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _custom_types(annotation: Any) -> Iterator[Any]:
    return (node.cls for node in type_nodes(annotation) if isinstance(node, msgspec.inspect.CustomType))


def type_nodes(annotation: Any) -> Iterator[msgspec.Struct]:
    """Every type inside a type, each once, as msgspec describes it."""
    pending: list[Any] = [msgspec.inspect.type_info(annotation)]
    seen: dict[int, Any] = {}
    while pending:
        node = pending.pop()
        if isinstance(node, (list, tuple)):
            pending.extend(node)
        elif isinstance(node, msgspec.Struct) and id(node) not in seen:
            seen[id(node)] = node
            yield node
            pending.extend(getattr(node, name) for name in node.__struct_fields__)


def type_shown(annotation: Any) -> str:
    """A type for messages."""
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
