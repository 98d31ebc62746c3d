"""An entry of the audit log: how it is made from a statement and its rows, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.model.job import At
from fencerow.core.model.person import Person
from fencerow.core.wing import ChangeByHand
from fencerow.db.run import Param, Row, Rows, as_int, text_or_none

TARGET_LENGTH_MAX = 2000
TEXT_LENGTH_MAX = 500
SHOWN_LENGTH_MAX = 4000  # of one parameter


class Entry(msgspec.Struct, frozen=True):
    """One change that a person made.

    `via`: command, http or dashboard. `kind` and `verb`: what became of what, such as a queue that was paused.
    `targets`: its name, or the names of all that were changed together. `detail`: what was said with it, such as the
    reason. `address` and `request_id`: from where, where it came through a network.
    """

    id: int
    at_us: int
    person: str
    via: str
    address: str | None
    request_id: str | None
    kind: str
    verb: str
    targets: list[str]
    detail: dict[str, Any]

    at = At("at_us")


def entry_of_row(row: Row) -> Entry:
    """What a row of `read_entries` says."""
    others: list[str] = [] if row[9] is None else msgspec.json.decode(str(row[9]))
    return Entry(
        as_int(row[0]),
        as_int(row[1]),
        str(row[2]),
        str(row[3]),
        text_or_none(row[4]),
        text_or_none(row[5]),
        str(row[6]),
        str(row[7]),
        [str(row[8]), *others],
        msgspec.json.decode(str(row[10])),
    )


def told(
    change: ChangeByHand, person: Person, params: Mapping[str, Param], rows: Rows
) -> dict[str, Any] | None:
    """What is written of a statement that ran; None when it has changed nothing."""
    if not rows and not change.always:
        return None
    targets = _targets(change, params, rows)
    if not targets:
        return None
    return {
        "person": person.name[:TEXT_LENGTH_MAX],
        "via": str(person.via),
        "address": _cut(person.address),
        "request_id": _cut(person.request_id),
        "kind": change.kind,
        "verb": change.verb,
        "target": targets[0][:TARGET_LENGTH_MAX] or "-",
        "others": targets[1:] or None,
        "detail": _detail(change, person, params),
    }


def _detail(change: ChangeByHand, person: Person, params: Mapping[str, Param]) -> dict[str, Param]:
    said = {name: _shown(params[name]) for name in change.shown if params.get(name) is not None}
    return said if person.reason is None else {"reason": _cut(person.reason), **said}


def _targets(change: ChangeByHand, params: Mapping[str, Param], rows: Rows) -> Sequence[str]:
    if change.targets is not None:
        return change.targets(params, rows)
    if change.target is not None:
        return [str(params[change.target])]
    return [str(row[0]) for row in rows]


def _shown(value: Param) -> Param:
    """A long text is cut, and says so."""
    if isinstance(value, str) and len(value) > SHOWN_LENGTH_MAX:
        return f"{value[:SHOWN_LENGTH_MAX]}… ({len(value)} characters)"
    return value


def _cut(text: str | None) -> str | None:
    return text[:TEXT_LENGTH_MAX] if text else None
