"""Decoding what the database hands over, such that one damaged row never hides the others.

Our own submits store what can be read again. Somebody else's INSERT or UPDATE may not: labels of another shape,
arguments nested beyond what a decoder follows, a number that is none. Such a column reads as nothing, and the job
itself is claimed, listed and run like any other. Arguments that cannot be read do not come with the claim: the worker
fetches them when the job starts, and then that job fails alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fencerow.core.model.job import Claimed, JobRecord, WorkerRecord
from fencerow.core.store.pieces import elements, fields

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# What a column reads as that can be neither null nor read.
NOTHING: dict[Any, Any] = {int: 0, str: "", bool: False, msgspec.Raw: msgspec.Raw(b"null")}

_claims = msgspec.json.Decoder(list[Claimed])
_record = msgspec.json.Decoder(JobRecord)
_worker = msgspec.json.Decoder(WorkerRecord)
_claim_types = [each.type for each in msgspec.structs.fields(Claimed)]
_record_types = {each.name: each.type for each in msgspec.structs.fields(JobRecord)}
_worker_types = {each.name: each.type for each in msgspec.structs.fields(WorkerRecord)}


def claims_of(text: str) -> list[Claimed]:
    """The claimed attempts in a JSON array of arrays."""
    try:
        return _claims.decode(text)
    except UNREADABLE:
        return [_claim(elements(row)) for row in elements(text)]


def record_of(text: str) -> JobRecord:
    """One job in a JSON object; `damaged` names the columns that could not be read."""
    try:
        return _record.decode(text)
    except UNREADABLE:
        values, damaged = _salvaged(_record_types, text)
        return JobRecord(**values, damaged=tuple(damaged))


def worker_of(text: str) -> WorkerRecord:
    """One registration in a JSON object. What it says of itself reads as nothing if it cannot be read."""
    try:
        return _worker.decode(text)
    except UNREADABLE:
        return WorkerRecord(**_salvaged(_worker_types, text)[0])


def read_or(otherwise: Any, wanted: Any, text: str) -> Any:
    """A JSON text as a value of the wanted type, or what is to stand for it."""
    value, is_damaged = _read(wanted, text)
    return otherwise if is_damaged else value


def _claim(row: list[str]) -> Claimed:
    return Claimed(
        *(read_or(NOTHING.get(wanted), wanted, text) for wanted, text in zip(_claim_types, row, strict=True))
    )


def _salvaged(types: Mapping[str, Any], text: str) -> tuple[dict[str, Any], list[str]]:
    """Each field by itself, and which could not be read. Free JSON then stays the text that it is, for people."""
    values: dict[str, Any] = {}
    damaged: list[str] = []
    for quoted, written in fields(text).items():
        name = quoted[1:-1]
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
