"""A job that nobody runs, as whoever changes it reads it under its lock."""

from __future__ import annotations

import msgspec

from fencerow.core.db.run import Row, as_int, as_int_or_none, text_or_none


class Idle(msgspec.Struct, frozen=True):
    """`args` is there only where new ones are to come. `read`: what a wing reads of it, see `Gating`."""

    id: str
    name: str
    queue: str
    priority: int
    run_at_us: int
    args_bytes: int
    options: str | None
    args: str | None
    expires_us: int | None
    now_us: int
    read: Row


def idle_of(row: Row) -> Idle:
    """A row of `lock_idle`."""
    return Idle(
        str(row[0]), str(row[1]), str(row[2]), as_int(row[3]), as_int(row[4]), as_int(row[5]),
        text_or_none(row[6]), text_or_none(row[7]), as_int_or_none(row[8]), as_int(row[9]), row[10:],
    )  # fmt: skip
