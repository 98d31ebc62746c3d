"""Names of a package whose modules are loaded when a name is first used (PEP 562).

Who submits jobs never pays for the worker, and a program on SQLite never for the driver of PostgreSQL. The package
says the same names under `TYPE_CHECKING`, for editors and type checkers; a test compares the two.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

NONE: Mapping[str, str] = MappingProxyType({})


def lazily(
    package: str, modules: Mapping[str, str], moved: Mapping[str, str] = NONE
) -> Callable[[str], object]:
    """The package's `__getattr__`: `modules` has the module in which each name lies, or which it names.

    `moved` has the names that were here once, and where they are public now: they are found there, with a warning.
    """

    def find(name: str) -> object:
        if name in moved:
            warn_of_a_move(package, name, moved[name])
            return getattr(import_module(moved[name]), name)
        where = modules.get(name)
        if where is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(where)
        found = module if where == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)  # from now on it is there
        return found

    return find


def warn_of_a_move(package: str, name: str, where: str) -> None:
    """Tell whoever asked the `__getattr__` that calls this, at the line where the name was asked for."""
    text = f"{package}.{name} has moved: write `from {where} import {name}`"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
