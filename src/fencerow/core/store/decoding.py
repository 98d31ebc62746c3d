"""Decoding what the database hands over, such that one damaged row never hides the others.

Our own submits store what can be read again. Somebody else's INSERT or UPDATE may not: labels of another shape,
arguments nested beyond what a decoder follows, a number that is none. Such a column reads as nothing, and the job
itself is claimed, listed and run like any other. Arguments that cannot be read do not come with the claim: the worker
fetches them when the job starts, and then that job fails alone.

A decoder descends into what it reads and gives up where it is nested too deeply. What takes an array or object apart
here looks at brackets and strings only, so depth means nothing. It is JSON: the database has checked that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fencerow.core.model.job import Claimed, JobRecord
from fencerow.core.model.value import UNREADABLE
from fencerow.core.model.worker import WorkerRecord

# What a column reads as that can be neither null nor read.
NOTHING: dict[Any, Any] = {int: 0, str: "", bool: False, msgspec.Raw: msgspec.Raw(b"null")}

# Strings come first, so that a bracket or a comma inside one is left alone.
MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)

_record = msgspec.json.Decoder(JobRecord)
_worker = msgspec.json.Decoder(WorkerRecord)
_claim_types = [each.type for each in msgspec.structs.fields(Claimed)]
_record_types = {each.name: each.type for each in msgspec.structs.fields(JobRecord)}
_worker_types = {each.name: each.type for each in msgspec.structs.fields(WorkerRecord)}


def salvaged_claims(text: str) -> list[Claimed]:
    """The claimed attempts in a JSON array of arrays that cannot be read as one."""
    return [_claim(elements(row)) for row in elements(text)]


def record_of(text: str) -> JobRecord:
    """One job in a JSON object; `damaged` names the columns that could not be read."""
    try:
        return _record.decode(text)
    except UNREADABLE:
        values, damaged = salvaged(_record_types, _named(text))
        return JobRecord(**values, damaged=tuple(damaged))


def worker_of(text: str) -> WorkerRecord:
    """One registration in a JSON object. What it says of itself reads as nothing if it cannot be read."""
    try:
        return _worker.decode(text)
    except UNREADABLE:
        return WorkerRecord(**salvaged(_worker_types, _named(text))[0])


def read_or(otherwise: Any, wanted: Any, text: str) -> Any:
    """A JSON text as a value of the wanted type, or what is to stand for it."""
    value, is_damaged = _read(wanted, text)
    return otherwise if is_damaged else value


def whole_or_none(value: object) -> int | None:
    """A column that holds a whole number. A file of SQLite keeps whatever was written there: that reads as nothing."""
    return value if isinstance(value, int) else None


def _claim(row: list[str]) -> Claimed:
    return Claimed(
        *(read_or(NOTHING.get(wanted), wanted, text) for wanted, text in zip(_claim_types, row, strict=True))
    )


def _named(text: str) -> dict[str, str]:
    return {quoted[1:-1]: written for quoted, written in fields(text).items()}


def salvaged(types: Mapping[str, Any], said: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Each field by itself, and which could not be read. Free JSON then stays the text that it is, for people."""
    values: dict[str, Any] = {}
    damaged: list[str] = []
    for name, written in said.items():
        wanted = types[name]
        values[name], is_damaged = _read(wanted, written)
        if is_damaged:
            damaged.append(name)
            values[name] = written if wanted is Any else NOTHING.get(wanted)
    return values, damaged


def _read(wanted: Any, text: str) -> tuple[Any, bool]:
    """A value, and whether it could not be read."""
    try:
        return msgspec.json.decode(text, type=wanted), False
    except UNREADABLE:
        return None, True


def elements(array: str) -> list[str]:
    """The elements of an array, as they are written."""
    return [text for text in _between(array, ",") if text]


def fields(document: str) -> dict[str, str]:
    """The fields of an object: the name as it is written, with its quotes, and the value."""
    return dict(map(_divided, elements(document)))


def _divided(field: str) -> tuple[str, str]:
    name = MARK.match(field)
    assert name is not None, "a field begins with its name"
    return name.group(0), field[name.end() :].lstrip().removeprefix(":").strip()


def _between(text: str, mark: str) -> Iterator[str]:
    """What stands between the marks that lie directly inside the outermost brackets."""
    depth, start = 0, 0
    for match in MARK.finditer(text):
        found = match.group(0)
        if found in "[{":
            depth += 1
            start = match.end() if depth == 1 else start
        elif found in "]}":
            depth -= 1
            if depth == 0:
                yield text[start : match.start()].strip()
        elif found == mark and depth == 1:
            yield text[start : match.start()].strip()
            start = match.end()
