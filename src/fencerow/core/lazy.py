"""The door of a package: its names, whose modules are loaded when a name is first used (PEP 562).

Who submits jobs never pays for the worker, and a program on SQLite never for the driver of PostgreSQL. The package
says the same names under `TYPE_CHECKING`, for editors and type checkers; a test compares the two.

What is handed out here is called by users, so it answers a call that does not fit with our own error: `answering.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import EnumMeta
from importlib import import_module
from types import FunctionType

from fencerow.core.answering import answer_when_made, answering


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """The package's `__getattr__`: `modules` has the module in which each name lies, or which it names."""

    def find(name: str) -> object:
        where = modules.get(name)
        if where is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(where)
        found = module if where == f"{package}.{name}" else getattr(module, name)
        if isinstance(found, type):
            if not getattr(found, "_is_protocol", False) and not isinstance(found, EnumMeta):
                answer_when_made(found)
        elif isinstance(found, FunctionType):
            found = answering(found)
            setattr(module, name, found)  # one function under one name, also for pickle
        setattr(sys.modules[package], name, found)  # from now on it is there
        return found

    return find
