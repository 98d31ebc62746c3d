"""What a decorator looks at before anything is declared: no method, no class, and parameters that say their type."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from fencerow.core.errors import DeclarationError
from fencerow.core.model.signature import name_of

OBJECT_NAMES = ("self", "cls")
JOB_NAMES = ("job", "ctx", "context")


class UntypedParameters(UserWarning):
    """Parameters of a job have no annotation, so their values arrive as plain JSON data."""


def refuse_uncallable(function: object, decorator: str) -> None:
    """Make sure that a decorator was given a function, or an object that can be called like one.

    Raises:
        DeclarationError: it cannot be called, or it is a class or a method.
    """
    if isinstance(function, classmethod):
        raise _method(name_of(function.__func__), "cls", decorator)
    if not callable(function):
        raise DeclarationError(
            f"{decorator} was given a value of type {type(function).__name__}",
            "it decorates a function; pass its options by name",
            f"write {decorator} or {decorator}(queue=...)",
        )
    if inspect.isclass(function):
        raise DeclarationError(
            f"{decorator} was given the class {function.__qualname__}",
            "a job is a function, and what it returns is stored as JSON",
            "decorate a function, which may make an object of the class",
        )
    if (first := _object_parameter(function)) is not None:
        raise _method(name_of(function), first, decorator)


def warn_of_untyped(function: Callable[..., Any], untyped: Sequence[str], decorator: str) -> None:
    """Say once, where the function stands, which of its parameters would not arrive as they were passed."""
    if not untyped:
        return
    names = ", ".join(untyped)
    text = (
        f"{decorator} {name_of(function)}: {names} {'has' if len(untyped) == 1 else 'have'} no annotation. "
        "The worker gets plain JSON data there: a datetime arrives as text, a dataclass as a dict. "
        f"Annotate each parameter, for example `{untyped[-1]}: int`; `{untyped[-1]}: Any` says that JSON data is wanted"
    )
    if untyped[0] in JOB_NAMES:
        text += f". Only `{untyped[0]}: Job` gets the running job; without an annotation it is an argument"
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        warnings.warn(text, UntypedParameters, stacklevel=4)
    else:
        warnings.warn_explicit(text, UntypedParameters, code.co_filename, code.co_firstlineno)


def _object_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter through which a function that stands in a class would get its object."""
    owner, dot, _ = getattr(inspect.unwrap(function), "__qualname__", "").rpartition(".")
    if (
        not dot
        or owner.endswith("<locals>")
        or inspect.ismethod(function)
        or isinstance(function, staticmethod)
    ):
        return None
    first = next(iter(inspect.signature(function).parameters), None)
    return first if first in OBJECT_NAMES else None


def _method(name: str, first: str, decorator: str) -> DeclarationError:
    return DeclarationError(
        f"{name} is a method, and `{first}` would be an argument of the job",
        "a worker has no object to call it on; only arguments are stored",
        f"write {decorator} above a function outside of the class, and make or look up the object in it",
    )
