"""The operations on tallies of hooks: add to them, list them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.db.run import Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none


class HookCounts(msgspec.Struct):
    """What a gateway has counted of a hook since its last note. `received_s` and the like: how many seconds ago the
    latest of them came; None: none did. `refusal`: of the latest that was refused, in words of ours."""

    hook: str
    received: int = 0
    received_s: float | None = None
    repeated: int = 0
    repeated_s: float | None = None
    refused: int = 0
    refused_s: float | None = None
    refusal: str | None = None


class HookTally(msgspec.Struct, frozen=True):
    """What came to a hook since its first note: webhooks that became a job, that had come before, that were refused."""

    hook: str
    received: int
    received_at_us: int | None
    repeated: int
    repeated_at_us: int | None
    refused: int
    refused_at_us: int | None
    refusal: str | None


@operation(alone=True)
def note_hooks(counts: Sequence[HookCounts]) -> Steps[None]:
    """Add these counts. It must not be repeated where it is not known whether it was done: they would count twice."""
    yield from execute("note_hooks", counts=msgspec.json.encode(list(counts)).decode())


@operation(alone=True, repeatable=True, writes="")
def hook_tallies(*, limit: int) -> Steps[tuple[list[HookTally], int]]:
    """The tallies by name, at most so many, and the database's clock."""
    rows = yield from execute("list_hook_tallies", limit=limit)
    return [_tally(row) for row in rows if row[0] is not None], as_int(rows[0][8])


def _tally(row: Row) -> HookTally:
    return HookTally(
        str(row[0]),
        as_int(row[1]),
        as_int_or_none(row[2]),
        as_int(row[3]),
        as_int_or_none(row[4]),
        as_int(row[5]),
        as_int_or_none(row[6]),
        text_or_none(row[7]),
    )
