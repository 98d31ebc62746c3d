"""Short forms of types, and protocols, that signatures use: what they stand for."""

from __future__ import annotations

import ast
import inspect
import sys
from types import ModuleType
from typing import Any

from tools.public.names import NAMES, Entry
from tools.public.source import body_for_type_checkers, is_ours, module_of, ours, parsed


def aliases(entry: Entry) -> dict[str, str]:
    """The short forms of types that a name's signatures use, by their names, and what they stand for."""
    found: dict[str, str] = {}
    for each in (entry, *entry.members):
        modules = _homes(each.found)
        for word in NAMES.findall(" ".join(each.signatures)):
            text = next(filter(None, (_alias(module, word) for module in modules)), "")
            if text:
                found[word] = text
    return found


def _homes(found: Any) -> list[ModuleType]:
    """The modules whose words the signatures of a thing use."""
    plain: Any = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
    if inspect.isclass(plain):
        return [module_of(base) for base in ours(plain)]
    return [module_of(plain)] if inspect.isroutine(plain) else []


def _alias(module: ModuleType, word: str) -> str:
    """What a word of one of our modules stands for, or what a protocol says of itself; nothing for other words."""
    value = vars(module).get(word)
    if inspect.isclass(value) and getattr(value, "_is_protocol", False) and is_ours(value):
        return inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0]
    for node in (*parsed(module).body, *body_for_type_checkers(module)):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == word for target in node.targets):
            plain = isinstance(node.value, ast.Call | ast.Constant)
            return "" if plain else f"`{ast.unparse(node.value)}`"
        if isinstance(node, ast.ImportFrom) and word in {alias.name for alias in node.names}:
            made = sys.modules.get(node.module or "")
            if (
                made is None
                or made is module
                or not made.__name__.startswith(("fencerow.", "fencerow_proof."))
            ):
                return ""
            return _alias(made, word)
    return ""
