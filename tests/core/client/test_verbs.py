"""Every verb and its twin for async code are made from one procedure; what people read of them is true of both."""

from __future__ import annotations

import inspect
import pydoc
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType
from typing import Any, get_type_hints

import pytest

import fencerow
import tests.django.project  # noqa: F401 (what is below fencerow.django is imported where Django has settings)
from fencerow import Client, Handle
from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import Ref
from fencerow.core.model.job import JobRecord
from fencerow.core.verb import averb, verb
from fencerow.migrations.threaded import threaded
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine


def classes() -> Iterator[type]:
    """Every public class of the package."""
    for found in walk_packages(fencerow.__path__, "fencerow."):
        if not found.name.startswith(("fencerow.testing", "fencerow.cli")):
            for each in vars(import_module(found.name)).values():
                if isinstance(each, type) and each.__module__ == found.name:
                    yield each


def twins() -> list[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    found: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {}
    for each in classes():
        for name, twin in vars(each).items():
            plain = vars(each).get(name.removeprefix("a"))
            if isinstance(plain, FunctionType) and name.startswith("a") and inspect.iscoroutinefunction(twin):
                found[f"{each.__qualname__}.{name}"] = (name, plain, twin)
    return sorted(found.values(), key=lambda pair: pair[2].__qualname__)


def shape(signature: inspect.Signature) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; a twin that is written by hand may take more types, such as an async iterable."""
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


def wrong(name: str, plain: Callable[..., Any], twin: Callable[..., Any]) -> bool:
    ours, theirs = inspect.signature(plain), inspect.signature(twin)
    return (
        inspect.iscoroutinefunction(plain)
        or not (twin.__name__ == name == f"a{plain.__name__}")
        or twin.__qualname__ != plain.__qualname__.removesuffix(plain.__name__) + name
        or shape(ours) != shape(theirs)
        or "Procedure" in str(ours.return_annotation)
    )


def test_a_twin_has_the_signature_of_its_verb() -> None:
    found = twins()

    assert len(found) > 50
    assert [each[2].__qualname__ for each in found if wrong(*each)] == []


def test_what_is_shown_is_what_comes_back() -> None:
    assert str(inspect.signature(Client.get)) == "(self, ref: 'Ref') -> 'JobRecord'"
    assert inspect.signature(Client.aget).return_annotation == "JobRecord"
    assert get_type_hints(Client.get) == {"ref": Ref, "return": JobRecord} == get_type_hints(Client.aget)
    assert "list[JobRecord]" in pydoc.render_doc(Client.list_jobs)
    assert "reason: 'str | None' = None" in pydoc.render_doc(vars(Handle)["acancel"])


def test_the_text_of_a_verb_is_that_of_its_twin_too() -> None:
    assert Client.get.__doc__ is not None and Client.aget.__doc__ is not None
    assert Client.get.__doc__.startswith("The job as it stands")
    assert Client.aget.__doc__.startswith("`get` for async code. The job as it stands")
    assert "JobGone" in Client.aget.__doc__


def test_the_traceback_of_a_fault_names_the_verb(engine: AnyEngine) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        Counted(engine).divide(0)

    assert "divide" in [each.name for each in traceback.extract_tb(raised.value.__traceback__)]


class Counted(ClientBase):
    """Verbs of two kinds."""

    @verb
    def divide(self, by: int) -> Any:
        """One by it."""
        yield from ()
        return 1 // by

    @verb
    def shout(self, text: str, *, connection: object | None = None) -> Any:
        """Louder."""
        yield from ()
        return text.upper(), connection

    ashout = averb(shout)

    def length(self, text: str) -> int:
        """How long it is."""
        return len(text)

    alength = threaded(length)


async def test_both_run_the_same_procedure(engine: AnyEngine) -> None:
    base = Counted(Flaky(engine))

    assert await base.ashout("a") == ("A", None)
    assert await base.alength("abc") == 3
    assert Counted.alength.__name__ == "alength"
    assert str(Counted.alength.__doc__).startswith("`length` for async code. How long it is.")
