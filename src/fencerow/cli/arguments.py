"""A job's arguments as they are typed: one JSON object, `-` for one on the standard input, or key=value pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from fencerow.core.errors import InvalidInput, InvalidPayload

STDIN_BYTES_MAX = 64 * 1024 * 1024
SHOWN_MAX = 60


def parsed_arguments(words: Sequence[str]) -> dict[str, Any]:
    """The named arguments that the words describe.

    Raises:
        InvalidInput: they are neither JSON nor pairs.
        InvalidPayload: they hold NaN or Infinity.
    """
    if list(words) == ["-"]:
        return json_arguments("-", "the argument")
    if len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        return json_arguments(words[0], "the argument")
    return pairs_of(words)


def json_arguments(text: str, where: str) -> dict[str, Any]:
    """The named arguments of one JSON object, which stood at `where`; `-` is one on the standard input.

    Raises:
        InvalidInput: it is none. InvalidPayload: it holds NaN or Infinity.
    """
    if text == "-":
        return _object(sys.stdin.read(STDIN_BYTES_MAX), "the standard input")
    return _object(text, where)


def pairs_of(words: Sequence[str], option: str | None = None) -> dict[str, Any]:
    """What key=value words say; a value is JSON, or else text. `option` is where they stood.

    Raises:
        InvalidInput: one is no pair, or a key stands twice.
    """
    pairs = [_pair(word, option) for word in words]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{name} was given twice", "each has one value", "leave one out")
    return dict(pairs)


def _pair(word: str, option: str | None) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if (not equals or not name) and option is not None:
        raise InvalidInput(
            f"{option} {_shown(word)} is no KEY=VALUE",
            "the value is JSON, or else text",
            f"for example {option} customer=17",
        )
    if not equals or not name:
        raise InvalidInput(
            f"{_shown(word)} is neither JSON nor key=value",
            "arguments are one JSON object, or pairs",
            'for example path=invoice.pdf pages=3, or \'{"path": "invoice.pdf"}\'',
        )
    try:
        return name, _decoded(text)
    except ValueError:
        return name, text


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = _decoded(text)
    except ValueError as error:
        raise InvalidInput(
            f"{where} is no JSON: {_shown(text)}", str(error), 'quote it for the shell: \'{"key": "value"}\''
        ) from None
    except RecursionError:
        raise InvalidInput(f"{where} is nested too deeply", "64 levels are kept", "flatten it") from None
    if not isinstance(value, dict):
        raise InvalidInput(
            f"{where} is a JSON {type(value).__name__}",
            "arguments are passed by name: a JSON object is expected",
            'write {"parameter": value}',
        )
    return value


def _decoded(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput(
            "a JSON object has the same key twice", "one of the values would be lost", "leave one out"
        )
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidPayload(
        f"the arguments hold {text}", "JSON has no such number", "pass null or a string instead"
    )


def _shown(text: str) -> str:
    return ascii(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}...")
