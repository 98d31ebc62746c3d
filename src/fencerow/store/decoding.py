"""Decoding what the database hands over, such that one edited row never hides the others.

Our own submits store well-formed tags, metadata and headers. Somebody else's UPDATE may not; such a
column reads as nothing, and the job itself is claimed, listed and run like any other.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fencerow.model.job import Claimed, JobRecord

# The columns that callers may shape, and what they must decode to.
SHAPED: dict[str, Any] = {
    "tags": list[str] | None,
    "metadata": dict[str, Any] | None,
    "headers": dict[str, str] | None,
}
_places = {Claimed.__struct_fields__.index(name): name for name in SHAPED}
_null = msgspec.Raw(b"null")

_claims = msgspec.json.Decoder(list[Claimed])
_record = msgspec.json.Decoder(JobRecord)


def claims_of(text: str) -> list[Claimed]:
    """The claimed attempts in a JSON array of arrays."""
    try:
        return _claims.decode(text)
    except msgspec.ValidationError:
        rows = msgspec.json.decode(text, type=list[list[msgspec.Raw]])
        mended = [[_fitting(_places.get(place), value) for place, value in enumerate(row)] for row in rows]
        return _claims.decode(msgspec.json.encode(mended))


def record_of(text: str) -> JobRecord:
    """One job in a JSON object."""
    try:
        return _record.decode(text)
    except msgspec.ValidationError:
        fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        mended = {name: _fitting(name, value) for name, value in fields.items()}
        return _record.decode(msgspec.json.encode(mended))


def _fitting(name: str | None, value: msgspec.Raw) -> msgspec.Raw:
    if name not in SHAPED:
        return value
    try:
        msgspec.json.decode(value, type=SHAPED[name])
    except msgspec.ValidationError:
        return _null
    return value
