"""The door of a package: its names, whose modules are loaded when a name is first used (PEP 562).

Who submits jobs never pays for the worker, and a program on SQLite never for the driver of PostgreSQL. The package
says the same names under `TYPE_CHECKING`, for editors and type checkers; a test compares the two.

What is handed out here is called by users, so it answers a call that does not fit with our own error: Python's names
neither the closest word nor what another system's word is here. Verbs do so by themselves (`db/verb.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import EnumMeta
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type[Any])


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """The package's `__getattr__`: `modules` has the module in which each name lies, or which it names."""

    def find(name: str) -> object:
        where = modules.get(name)
        if where is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(where)
        found = module if where == f"{package}.{name}" else getattr(module, name)
        if isinstance(found, type):
            answer(found)
        elif isinstance(found, FunctionType):
            found = answering(found)
            setattr(module, name, found)  # one function under one name, also for pickle
        setattr(sys.modules[package], name, found)  # from now on it is there
        return found

    return find


def answer(called: C) -> C:
    """Let a class say what does not fit when one is made of it, or when one of its own public methods is called.

    It decorates a class whose objects users get without importing it.
    """
    if not getattr(called, "_is_protocol", False) and not isinstance(called, EnumMeta):
        maker = next(each for each in called.__mro__ if "__init__" in vars(each))
        for owner, name, member in [
            (maker, "__init__", vars(maker)["__init__"]),
            *((called, name, member) for name, member in vars(called).items() if not name.startswith("_")),
        ]:
            if isinstance(member, FunctionType) and owner.__module__.startswith("fencerow"):
                setattr(owner, name, answering(member))
    return called


def answering(called: F) -> F:
    """The same function, which says what does not fit when it is called.

    Raises, when it is called:
        WrongCall: an argument is unknown, or lacks.
    """
    if hasattr(called, "__wrapped__"):
        return called  # it does so already, or what stands around it takes everything

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return called(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # it was called, and something in it failed
            from fencerow.core.model.misfit import (  # who writes no wrong call never loads it
                misfit,
                name_of_call,
            )

            raise misfit(called, name_of_call(called, args), args, kwargs) from None

    async def acall(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return wraps(called)(acall if iscoroutinefunction(called) else call)  # type: ignore[return-value]
