"""JSON from strangers: read only if it means the same to every reader, can be kept, and costs little to read.

Three passes, each linear, each after the one before has bounded what it may cost. First the marks outside of texts are
counted in the raw bytes: how deep, how many names, how many values. Then the parser of the standard library makes the
values; what it would let pass is left in its place as a `Fault`. Last, and only if there may be one, a walk finds it
and says where it lies. Time goes with the length of the body, memory with that and with `items_max`.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NoReturn

from fencerow.core.model.faults import DEPTH_MAX, INT_MAX, INT_MIN, Fault, path_step
from fencerow.db.text import SURROGATE
from fencerow.web.errors import InvalidRequest
from fencerow.web.settings import WebSettings

NAME = "the body"
PATH_LENGTH_MAX = 200
BLOCK_BYTES = 64 * 1024
NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'[]{},:"')
OPENED = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# Escapes of what cannot be kept: NUL, and surrogates, which are also what a text outside of the first plane is sent as.
SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one body may hold. `items_max` counts all values, those in objects too."""

    depth_max: int = DEPTH_MAX
    keys_max: int = 10_000
    items_max: int = 100_000
    name_bytes_max: int = 256
    number_digits_max: int = 64

    @staticmethod
    def of(settings: WebSettings) -> Bounds:
        """As the settings say."""
        return Bounds(keys_max=settings.web_body_keys_max, items_max=settings.web_body_items_max)


BOUNDS = Bounds()


def plain(body: bytes, bounds: Bounds = BOUNDS) -> Any:
    """The value of a JSON text: dicts, lists, str, int, float, bool and None.

    Beside what is no JSON, it refuses what readers understand differently (a name twice in one object, NaN, numbers
    beyond 64 bits or the range of a float), what cannot be kept (NUL, lone surrogates) and what exceeds `bounds`.

    Raises:
        InvalidRequest: what is wrong, and where. No value is repeated in it.
    """
    _check_marks(body, bounds)
    reader = _StrictParser(bounds)
    value = reader.read(_text_of(body))
    if reader.met or SUSPICIOUS.search(body):
        found = _first_fault(value)
        if found:
            raise _refusal(found)
    return value


def _check_marks(body: bytes, bounds: Bounds) -> None:
    marks = _marks_outside_texts(body)
    brackets = marks.translate(None, b",:")
    opened = brackets.count(b"[") + brackets.count(b"{")
    # So many brackets are enough to tell: with more there are too many values, however deep they lie.
    depths = accumulate(map(OPENED.__getitem__, brackets[: 2 * bounds.items_max]))
    if opened > bounds.depth_max and max(depths) > bounds.depth_max:
        _refuse_amount(f"is nested deeper than {bounds.depth_max} levels", "send flatter data")
    if marks.count(b":") > bounds.keys_max:
        _refuse_amount(f"has more than {bounds.keys_max} names", "send it in several requests")
    if marks.count(b",") + opened > bounds.items_max:
        _refuse_amount(f"has more than {bounds.items_max} values", "send it in several requests")


def _refuse_amount(what: str, fix: str) -> NoReturn:
    raise InvalidRequest(f"{NAME} {what}", "it must cost little to read", fix)


def _marks_outside_texts(body: bytes) -> bytes:
    """The brackets, commas and colons that are no part of a text, as far as it is JSON at all."""
    # With the escapes gone every quote begins or ends a text.
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, NOT_MARKS)
    outside, in_text = bytearray(), 0
    for start in range(
        0, len(unescaped), BLOCK_BYTES
    ):  # by blocks: the parts of a split cost far more than the text
        parts = unescaped[start : start + BLOCK_BYTES].split(b'"')
        outside += b"".join(parts[in_text::2])
        in_text = (in_text + len(parts) - 1) % 2
    return bytes(outside)


def _text_of(body: bytes) -> str:
    if body.startswith(codecs.BOM_UTF8):
        raise InvalidRequest(
            f"{NAME} begins with a byte order mark", "JSON has none", "send UTF-8 without it"
        )
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"{NAME} is no UTF-8 from byte {error.start} on"
    raise InvalidRequest(found, "JSON is sent as UTF-8", "encode it as UTF-8")


class _StrictParser:
    """The parser, told what else to look at. `met`: it left a `Fault` in the value."""

    def __init__(self, bounds: Bounds) -> None:
        self.met = False
        self._bounds = bounds

    def read(self, text: str) -> Any:
        try:
            return json.loads(
                text,
                object_pairs_hook=self._object,
                parse_int=self._whole,
                parse_float=self._fraction,
                parse_constant=self._constant,
            )
        except json.JSONDecodeError as error:
            # The error holds the whole text: it must not stay with ours.
            reason = error.msg.rstrip(": ")
            place = f"line {error.lineno}, column {error.colno}"
        raise InvalidRequest(
            f"{NAME} is no JSON: {reason[:80]}, at {place}", "this is read strictly (RFC 8259)", "send JSON"
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> Any:
        made = dict(pairs)
        if len(made) < len(pairs):
            return self._left(
                f"has the name {_shown(_first_twice(name for name, _ in pairs))} twice",
                "send each name once, because readers differ in which one counts",
            )
        most = self._bounds.name_bytes_max
        for name in made:
            if len(name) > most // 4 and len(name.encode("utf-8", "surrogatepass")) > most:
                return self._left(f"has a name of more than {most} bytes, {_shown(name)}", "shorten it")
        return made

    def _whole(self, digits: str) -> Any:
        if len(digits) > self._bounds.number_digits_max:
            return self._too_long()
        value = int(digits)
        if INT_MIN <= value <= INT_MAX:
            return value
        return self._left("is an integer beyond 64 bits", "send it as text")

    def _fraction(self, digits: str) -> Any:
        if len(digits) > self._bounds.number_digits_max:
            return self._too_long()
        value = float(digits)
        return (
            value
            if math.isfinite(value)
            else self._left("is a number that no float holds", "send it as text")
        )

    def _too_long(self) -> Fault:
        most = self._bounds.number_digits_max
        return self._left(f"is a number of more than {most} characters", "send it as text")

    def _constant(self, name: str) -> Fault:
        return self._left(f"is {name}, which is no JSON", "send null, or the number as text")

    def _left(self, what: str, fix: str) -> Fault:
        self.met = True
        return Fault("", what, fix)


def _first_twice(names: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 60 else f"{name[:60]}…")


def _first_fault(value: Any) -> Fault | None:
    """The first one in the order of the text, with its path."""
    if isinstance(value, Fault):
        return value
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, dict):
        return _first_in_object(value)
    if isinstance(value, list):
        for at, part in enumerate(value):
            if found := _first_fault(part):
                return _below(f"[{at}]", found)
    return None


def _first_in_object(value: dict[str, Any]) -> Fault | None:
    for name, part in value.items():
        if found := _text_fault(name):
            return Fault("", f"has a name, {_shown(name)}, that {found.what}", found.fix)
        if found := _first_fault(part):
            return _below(path_step(name), found)
    return None


def _below(step: str, found: Fault) -> Fault:
    return Fault(step + found.path, found.what, found.fix)


def _text_fault(text: str) -> Fault | None:
    if "\0" in text:
        return Fault("", f"contains NUL at position {text.index(chr(0))}", "remove it")
    if text.isascii() or not (lone := SURROGATE.search(text)):
        return None
    return Fault("", f"contains a lone surrogate at position {lone.start()}", "remove it")


def _refusal(fault: Fault) -> InvalidRequest:
    path = fault.path
    if len(path) > PATH_LENGTH_MAX:
        path = f"{path[: PATH_LENGTH_MAX // 2]} … {path[-PATH_LENGTH_MAX // 2 :]}"
    return InvalidRequest(f"{NAME}{path} {fault.what}", "every reader must understand it alike", fault.fix)
