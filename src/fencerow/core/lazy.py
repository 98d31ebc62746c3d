"""Names of a package whose modules are loaded when a name is first used (PEP 562).

Who submits jobs never pays for the worker, and a program on SQLite never for the driver of PostgreSQL. The package
says the same names under `TYPE_CHECKING`, for editors and type checkers; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """The package's `__getattr__`: `modules` has the module in which each name lies, or which it names."""

    def find(name: str) -> object:
        where = modules.get(name)
        if where is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(where)
        found = module if where == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)  # from now on it is there
        return found

    return find
