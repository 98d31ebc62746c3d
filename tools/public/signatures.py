"""A signature as it would be written in the source."""

from __future__ import annotations

import enum
import inspect
import json
import re
import typing
from collections.abc import Callable
from typing import Any

WIDTH = 98
LONG = 60
STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
ADDRESS = re.compile(r"<(?:class '|function )?([\w.]+)[^>]*>")
MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")


def signature(name: str, function: Callable[..., Any], *, bound: bool, making: bool = False) -> str:
    """As it would be written in the source, over several lines where one is too long; `bound` is without `self`."""
    found = inspect.signature(function, eval_str=False)
    kinds = list(found.parameters.values())[1 if bound else 0 :]
    parameters = _with_marks(kinds, [_parameter(each) for each in kinds])
    result = hint(found.return_annotation)
    ending = "" if making or not result else f" -> {result}"
    start = name if making else f"{'async ' if inspect.iscoroutinefunction(function) else ''}def {name}"
    if _is_block(function):
        start = f"@contextmanager\n{start}"
    line = f"{start}({', '.join(parameters)}){ending}"
    if len(line.rpartition("\n")[2]) <= WIDTH:
        return line
    return "\n".join([f"{start}(", *(f"    {each}," for each in parameters), f"){ending}"])


def _is_block(function: Callable[..., Any]) -> bool:
    return hasattr(function, "__wrapped__") and function.__code__.co_filename.endswith("contextlib.py")


def _with_marks(kinds: list[inspect.Parameter], texts: list[str]) -> list[str]:
    marked: list[str] = []
    for at, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
        before = kinds[at - 1].kind if at else None
        if kind.kind is kind.KEYWORD_ONLY and before not in (kind.KEYWORD_ONLY, kind.VAR_POSITIONAL):
            marked.append("*")
        marked.append(text)
        after = kinds[at + 1].kind if at + 1 < len(kinds) else None
        if kind.kind is kind.POSITIONAL_ONLY and after is not kind.POSITIONAL_ONLY:
            marked.append("/")
    return marked


def _parameter(parameter: inspect.Parameter) -> str:
    star = STARS.get(parameter.kind, "")
    kind = hint(parameter.annotation)
    text = f"{star}{parameter.name}" + (f": {kind}" if kind else "")
    if parameter.default is parameter.empty:
        return text
    return f"{text}{' = ' if kind else '='}{_default(parameter.default)}"


def _default(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return json.dumps(value)
    text = ADDRESS.sub(lambda match: match[1].rpartition(".")[2], repr(value))
    return text if len(text) <= LONG else f"{text.partition('(')[0]}(…)"


def hint(found: object) -> str:
    """A type as the source says it."""
    if found is inspect.Parameter.empty or found is None:
        return "None" if found is None else ""
    if isinstance(found, str):
        return found.replace("'", '"')
    if inspect.isclass(found) and not typing.get_args(found):
        return found.__name__
    return MODULES.sub("", str(found))
