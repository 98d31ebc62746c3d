"""Where a thing of ours is written: its module, its class as it stands there, its docstring, its file."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
INNER = re.compile(r" {4}# --- (?:inside|for the worker)")


def doc_of(found: Any) -> str:
    """Its own docstring; one that was inherited or made by a decorator says nothing of it."""
    if inspect.isclass(found):
        own = found.__dict__.get("__doc__") or ""
        return "" if own.startswith(f"{found.__name__}(") else inspect.cleandoc(own)
    return inspect.cleandoc(found.__doc__ or "")


def source_of(found: Any) -> str:
    return Path(str(module_of(found).__file__)).relative_to(ROOT).as_posix()


def inner(base: type) -> set[str]:
    """Members that stand below a line which says that they are not for users."""
    tree = tree_of(base)
    if tree is None:
        return set()
    lines = lines_of(module_of(base))[: tree.end_lineno]
    marked = [number for number, line in enumerate(lines, 1) if number > tree.lineno and INNER.match(line)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name
        for node in tree.body
        if isinstance(node, kinds) and node.lineno > min(marked, default=node.lineno)
    }


def tree_of(base: type) -> ast.ClassDef | None:
    """How a class of a module is written; None for one that is made inside of something."""
    return _classes(module_of(base)).get(base.__name__)


@cache
def _classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in parsed(module).body if isinstance(node, ast.ClassDef)}


@cache
def parsed(module: ModuleType) -> ast.Module:
    return ast.parse("\n".join(lines_of(module)))


@cache
def lines_of(module: ModuleType) -> list[str]:
    return Path(str(module.__file__)).read_text("utf-8").splitlines()


def ours(found: type) -> list[type]:
    """Its classes of ours, itself first. A `TypedDict` forgets those that it was made from."""
    if not typing.is_typeddict(found):
        return [base for base in found.__mro__ if is_ours(base)]
    tree = tree_of(found)
    above = [names_of(found).get(ast.unparse(base)) for base in (tree.bases if tree else ())]
    return [found, *(base for kind in reversed(above) if typing.is_typeddict(kind) for base in ours(kind))]


def is_ours(found: type) -> bool:
    return is_name_of_ours(found.__module__)


def is_name_of_ours(module: str) -> bool:
    return module.partition(".")[0] in ("fencerow", "fencerow_proof")


def _said(found: Any) -> ModuleType:
    plain: Any = found if inspect.isclass(found) else inspect.unwrap(found)
    return sys.modules[str(plain.__module__)]


@cache
def module_of(found: Any) -> ModuleType:
    """Where it is written. Errors say another module, under which they are public."""
    said, called = _said(found), str(getattr(found, "__name__", ""))
    if not inspect.isclass(found) or called in _classes(said):
        return said
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(("fencerow.", "fencerow_proof."))
    ]
    return next(
        module for module in modules if vars(module).get(called) is found and called in _classes(module)
    )


def names_of(found: Any) -> Mapping[str, Any]:
    """What the names in its text mean: those that its module imports for type checkers alone are among them."""
    module = module_of(found)
    return {**_for_type_checkers(module), **vars(module)}


def body_for_type_checkers(module: ModuleType) -> list[ast.stmt]:
    """What stands in a module for type checkers alone."""
    checked = [
        part
        for part in parsed(module).body
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"
    ]
    return [node for part in checked for node in part.body]


@cache
def _for_type_checkers(module: ModuleType) -> Mapping[str, Any]:
    return {
        alias.asname or alias.name: getattr(import_module(node.module), alias.name)
        for node in body_for_type_checkers(module)
        if isinstance(node, ast.ImportFrom) and node.module and is_name_of_ours(node.module)
        for alias in node.names
        if hasattr(import_module(node.module), alias.name)
    }
