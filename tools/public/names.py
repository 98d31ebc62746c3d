"""The public names as data: what the packages list, with their signatures and docstrings as they are written."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fencerow.errors import FencerowError
from tools.public.signatures import hint, signature
from tools.public.source import (
    doc_of,
    inner,
    is_ours,
    lines_of,
    module_of,
    names_of,
    ours,
    source_of,
    tree_of,
)

NAMES = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Entry:
    """One name: how it is written, what it says of itself, and what it has."""

    name: str  # `publish`, `Mutex`, `Mutex.acquire`
    kind: str  # class, function, method, property, attribute, value
    signatures: tuple[str, ...]
    doc: str
    source: str  # the file, from the root of the repository
    found: Any  # the thing itself
    package: str = ""  # from which it is imported; of what only an object gives, none
    twin: str = ""  # the same for async code
    members: tuple[Entry, ...] = ()
    raised: frozenset[str] = frozenset()  # errors that its own text raises
    types: Mapping[str, type] = field(default_factory=dict)  # of ours, by the words of its signatures

    @property
    def short(self) -> str:
        """The name without its class."""
        return self.name.rpartition(".")[2]


# --- one name -------------------------------------------------------------------------------------------


def entry_of(name: str, found: Any, *, constructed: bool = True) -> Entry:
    """What is to be said of a public name."""
    if inspect.isclass(found):
        return _class(name, found, constructed)
    if inspect.isroutine(found):
        return _function(name, "function", found)
    return Entry(name, "value", (), "", "", found)


def pairs(entries: list[Entry]) -> list[Entry]:
    """The same with a verb and its twin for async code in one entry."""
    known = {entry.name: entry for entry in entries}
    twins = {name: other for name in known if (other := _twin(name)) in known and _are_twins(known, name)}
    return [
        _joined(entry, known[twins[entry.name]]) if entry.name in twins else entry
        for entry in entries
        if entry.name not in twins.values()
    ]


def _twin(name: str) -> str:
    owner, dot, short = name.rpartition(".")
    return f"{owner}{dot}a{short}"


def _are_twins(known: Mapping[str, Entry], name: str) -> bool:
    kinds = {known[name].kind, known[_twin(name)].kind}
    return kinds <= {"function"} or kinds <= {"method"}


def _joined(verb: Entry, other: Entry) -> Entry:
    plain = f"`{verb.short}` for async code."
    more = other.doc.removeprefix(plain).strip().removeprefix(verb.doc).strip()
    own = other.doc.startswith(plain) and more != ""
    said = f"{verb.doc}\n\n`{other.short}`: {more}" if own else verb.doc
    return Entry(
        verb.name,
        verb.kind,
        verb.signatures + other.signatures,
        said,
        verb.source,
        verb.found,
        verb.package,
        twin=other.short,
        raised=verb.raised | other.raised,
        types={**verb.types, **other.types},
    )


def _class(name: str, found: type, constructed: bool) -> Entry:
    fields = _fields(found)
    making = _making(name, found) if constructed and not fields else ()
    members = pairs(list(_members(name, found)))
    kind, types = "class", {**_types(found, " ".join((*fields, *making)))}
    text: tuple[str, ...] = ()
    if fields:
        text = (
            "\n".join((f"class {name}({_bases(found)}):" if _bases(found) else f"class {name}:", *fields)),
        )
    doc = "\n\n".join(filter(None, (doc_of(found), doc_of(vars(found).get("__init__")) if making else "")))
    return Entry(
        name, kind, text or making, doc, source_of(found), found, members=tuple(members), types=types,
        raised=_raised(vars(found).get("__init__")) if making else frozenset(),
    )  # fmt: skip


def _function(name: str, kind: str, found: Callable[..., Any], *, bound: bool = False) -> Entry:
    overloads = typing.get_overloads(inspect.unwrap(found)) or [found]
    written = tuple(signature(name.rpartition(".")[2], each, bound=bound) for each in overloads)
    return Entry(
        name, kind, written, doc_of(found), source_of(found), found,
        raised=_raised(found), types=_types(found, " ".join(written)),
    )  # fmt: skip


def _making(name: str, found: type) -> tuple[str, ...]:
    if issubclass(found, enum.Enum) or getattr(found, "_is_protocol", False):
        return ()
    own = next((base for base in ours(found) if "__init__" in vars(base)), None)
    return () if own is None else (signature(name, vars(own)["__init__"], bound=True, making=True),)


def _members(name: str, found: type) -> Iterator[Entry]:
    seen: set[str] = set()
    fields = {line.strip().partition(":")[0].partition(" ")[0] for line in _fields(found)}
    made = list(dict(pair for base in reversed(ours(found)) for pair in _made(base)).items())
    said = [
        (short, value)
        for base in ours(found)
        for short, value in vars(base).items()
        if short not in inner(base)
    ]
    for short, value in made + said:
        if not short.startswith("_") and short not in seen and short not in fields:
            member = _member(f"{name}.{short}", value)
            if member is not None:
                seen.add(short)
                yield member


def _member(name: str, value: Any) -> Entry | None:
    if isinstance(value, cached_property):
        value = property(value.func)
    if isinstance(value, property):
        assert value.fget is not None
        result = getattr(value.fget, "__annotations__", {}).get("return", "")
        kind = names_of(value.fget).get(str(result))
        if inspect.isclass(kind) and is_ours(kind) and "__call__" in vars(kind):
            return _attribute(name, kind)
        text = f"{name.rpartition('.')[2]}: {hint(result)}"
        return Entry(
            name,
            "property",
            (text,),
            doc_of(value),
            source_of(value.fget),
            value,
            types=_types(value.fget, text),
        )
    if isinstance(value, classmethod | staticmethod):
        made = _function(name, "method", value.__func__, bound=isinstance(value, classmethod))
        decorator = f"@{type(value).__name__}\n"
        return Entry(
            name, "method", tuple(decorator + text for text in made.signatures), made.doc, made.source, value,
            raised=made.raised, types=made.types,
        )  # fmt: skip
    if inspect.isfunction(value):
        return _function(name, "method", value, bound=True)
    if isinstance(value, _Made):
        return _attribute(name, value.kind)
    if isinstance(value, _Given):
        text = f"{name.rpartition('.')[2]}: {value.hint}"
        return Entry(name, "attribute", (text,), "", "", value, types=_types(value.owner, text))
    return None


def _attribute(name: str, kind: type) -> Entry:
    """What an object makes for itself: `app.job`, which is called, or `client.workers`, which has verbs."""
    call = vars(kind).get("__call__")
    if call is not None:
        return _function(name, "method", call, bound=True)
    text = f"{name.rpartition('.')[2]}: {kind.__name__}"
    return Entry(name, "attribute", (text,), doc_of(kind), source_of(kind), kind, types={kind.__name__: kind})


@dataclass(frozen=True)
class _Made:
    kind: type


@dataclass(frozen=True)
class _Given:
    owner: type
    hint: str


def _made(base: type) -> Iterator[tuple[str, _Made | _Given]]:
    """Public attributes that a constructor sets: to an object of a class of ours, or to what it was given."""
    tree = tree_of(base)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = {each.arg: ast.unparse(each.annotation) for each in _arguments(node) if each.annotation}
            for line in node.body:
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Attribute):
                    made = _value(base, line.value, given)
                    if made is not None:
                        yield line.targets[0].attr, made


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.args, *function.args.kwonlyargs]


def _value(base: type, value: ast.expr, given: Mapping[str, str]) -> _Made | _Given | None:
    if isinstance(value, ast.Name) and value.id in given:
        return _Given(base, given[value.id])
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        kind = names_of(base).get(value.func.id)
        return _Made(kind) if inspect.isclass(kind) and is_ours(kind) else None
    return None


def _fields(found: type) -> tuple[str, ...]:
    """The fields of a record or the members of an enumeration, as they stand in the source with their comments."""
    lines: list[str] = []
    for base in reversed(ours(found)):
        tree = tree_of(base)
        if tree is None or ("__init__" in vars(base) and not _is_record(base)):
            continue
        source = lines_of(module_of(base))
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                shown = not node.target.id.startswith("_")
            else:
                shown = isinstance(node, ast.Assign) and issubclass(found, enum.Enum)
            if shown and not ast.unparse(node).endswith("ClassVar"):
                lines += source[node.lineno - 1 : node.end_lineno]
    return tuple(line.replace("  # noqa: RUF009 - it is frozen", "") for line in lines)


def _is_record(base: type) -> bool:
    return (
        hasattr(base, "__dataclass_fields__")
        or hasattr(base, "__struct_fields__")
        or hasattr(base, "_fields")
    )


def _bases(found: type) -> str:
    kinds = {"Exception": Exception, "StrEnum": enum.StrEnum, "IntEnum": enum.IntEnum}
    return next((name for name, kind in kinds.items() if issubclass(found, kind)), "")


def _types(found: Any, text: str) -> dict[str, type]:
    names = names_of(found)
    return {
        word: names[word]
        for word in NAMES.findall(text)
        if inspect.isclass(names.get(word)) and is_ours(names[word])
    }


def _raised(found: Any) -> frozenset[str]:
    """The errors of ours that the text of a function raises by itself."""
    if not inspect.isroutine(found):
        return frozenset()
    function = inspect.unwrap(found)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return frozenset()
    names = names_of(function)
    raised = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }
    return frozenset(
        name for name in raised if inspect.isclass(names.get(name)) and issubclass(names[name], FencerowError)
    )
