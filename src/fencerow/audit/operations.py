"""The operations on the audit log: write entries by themselves, read them, remove old ones."""

from __future__ import annotations

from collections.abc import Collection

from fencerow.audit.entry import Entry, entry_of_row
from fencerow.db.run import Steps, execute, operation


def noted(entries: Collection[bytes]) -> Steps[None]:
    """Write entries, each a JSON document, in the transaction that is under way."""
    if entries:
        yield from execute("note_entries", entries=f"[{b','.join(entries).decode()}]")


@operation(alone=True)
def note(entries: Collection[bytes]) -> Steps[None]:
    """Write entries of what is committed already."""
    yield from noted(entries)


@operation(alone=True, repeatable=True, writes="")
def read_entries(
    *,
    target: str | None,
    kind: str | None,
    person: str | None,
    since_us: int | None,
    before: int | None,
    limit: int,
) -> Steps[list[Entry]]:
    """A page of the entries that match, the newest first."""
    rows = yield from execute(
        "read_entries",
        target=target,
        kind=kind,
        person=person,
        since_us=since_us,
        before=before,
        limit=limit,
    )
    return [entry_of_row(row) for row in rows]


@operation(alone=True, repeatable=True)
def purge(*, age_s: float, limit: int) -> Steps[int]:
    """Remove up to `limit` entries that are older; returns how many."""
    return len((yield from execute("purge_entries", age_s=age_s, limit=limit)))
