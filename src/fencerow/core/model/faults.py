"""What JSON cannot keep faithfully, and where it sits inside a value.

msgspec writes NaN and Infinity as null without a word, and integers of any size. The encoded bytes tell
cheaply whether something of the kind may be in there (`value.suspicious`); only then is the value walked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from fencerow.core.errors import InvalidPayload
from fencerow.core.model.hooks import record_fields, to_plain
from fencerow.db.text import SURROGATE

DEPTH_MAX = 64
INT_MIN = -(2**63)
INT_MAX = 2**64 - 1

PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Part = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot be kept: its path inside the value, what it is, and what to do instead."""

    path: str
    what: str
    fix: str

    def refusal(self, where: str) -> InvalidPayload:
        """The error to raise; `where` names the value the path starts from."""
        return InvalidPayload(
            f"{where}{self.path} {self.what}", "it cannot be kept faithfully as JSON", self.fix
        )


def fault_in_encoded(value: Any) -> Fault | None:
    """Walk a value that msgspec could encode, in the plain form that msgspec itself makes of it.

    The plain form goes through the very same types as the encoder, so nothing can hide in a type
    that only one of the two knows.
    """
    try:
        plain = msgspec.to_builtins(value, enc_hook=to_plain)
    except RecursionError:
        return find_fault(value)
    except Exception as error:
        # msgspec.Raw is the one thing that can be encoded but not looked into.
        kind = type(error).__name__
        return find_fault(value) or Fault("", f"cannot be checked ({kind})", "pass plain values")
    return find_fault(plain)


def find_fault(value: Any) -> Fault | None:
    """The first fault in `value`, or None."""
    return _find(value, "", 1, ())


def _find(value: Any, path: str, depth: int, above: tuple[int, ...]) -> Fault | None:
    parts = _parts(value)
    if parts is None:
        return _leaf_fault(value, path)
    if id(value) in above:
        return Fault(path, "contains itself", "pass data without cycles")
    if depth > DEPTH_MAX:
        return Fault(
            path, f"is nested deeper than {DEPTH_MAX} levels", "pass flatter data or a reference to it"
        )
    for step, part in parts:
        if step.startswith("\0"):
            return _key_refusal(part, path)
        found = _find(part, path + step, depth + 1, (*above, id(value)))
        if found:
            return found
    return None


def _parts(value: Any) -> Iterable[Part] | None:
    """The members of a container, each with its step in the path; None for a leaf."""
    if isinstance(value, dict):
        return _dict_parts(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(f"[{position}]", part) for position, part in enumerate(value)]
    fields = record_fields(type(value))
    if fields is not None:
        return [(f".{name}", getattr(value, name)) for name, _ in fields if hasattr(value, name)]
    if hasattr(type(value), "model_dump"):
        try:
            return [("", to_plain(value))]
        except Exception:
            return None
    return None


def _dict_parts(value: dict[Any, Any]) -> Iterable[Part]:
    for key, part in value.items():
        if _key_is_bad(key):
            yield "\0", key
        yield path_step(key), part


def _key_is_bad(key: Any) -> bool:
    if _leaf_fault(key, "") is not None and not (isinstance(key, int)):
        return True
    return not _encodes({key: 0})


def _key_refusal(key: Any, path: str) -> Fault:
    fault = _leaf_fault(key, "")
    if fault:
        return Fault(path, f"has a key {ascii(key)[:60]} that {fault.what}", fault.fix)
    return Fault(path, f"has a key of type {type(key).__name__}", "use text or numbers as keys")


def path_step(key: Any) -> str:
    """The step from a dict to what lies under this key, as a path shows it."""
    if isinstance(key, str) and PLAIN_KEY.fullmatch(key) and len(key) <= 60:
        return f".{key}"
    return f"[{ascii(key)[:60]}]"


def _leaf_fault(value: Any, path: str) -> Fault | None:
    if isinstance(value, Enum):
        return _leaf_fault(value.value, path)
    if isinstance(value, float):
        return None if math.isfinite(value) else _not_finite(value, path)
    if isinstance(value, str):
        return _text_fault(value, path)
    if isinstance(value, int):
        return (
            None
            if INT_MIN <= value <= INT_MAX
            else Fault(path, "is an integer beyond 64 bits", "pass it as text, or as a Decimal")
        )
    if _encodes(value):
        return None
    return Fault(
        path,
        f"is of the unsupported type {type(value).__module__}.{type(value).__qualname__}",
        "pass plain data, a dataclass, a msgspec Struct or a pydantic model",
    )


def _not_finite(value: float, path: str) -> Fault:
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return Fault(path, f"is {name}", "pass None, or the number as text")


def _text_fault(value: str, path: str) -> Fault | None:
    if "\x00" in value:
        return Fault(
            path, f"contains NUL at position {value.index(chr(0))}", "remove it: text.replace('\\0', '')"
        )
    lone = SURROGATE.search(value)
    if lone:
        return Fault(
            path,
            f"contains the lone surrogate U+{ord(lone.group()):04X} at position {lone.start()}",
            "decode the text with errors='replace'",
        )
    return None


def _encodes(value: Any) -> bool:
    try:
        msgspec.json.encode(value, enc_hook=to_plain)
    except Exception:
        return False
    return True
