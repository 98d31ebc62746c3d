"""How far a standby has come with what the database wrote."""

from __future__ import annotations

from fencerow.core.db.run import Steps, as_int, as_int_or_none, execute, operation

PATIENCE_S = 1.0


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def wal_position() -> Steps[int]:
    """How far the log of the database goes, in bytes."""
    return as_int((yield from execute("wal_position"))[0][0])


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def replayed() -> Steps[tuple[int | None, int]]:
    """How far a replica has come in the log, None where it is none; and the microseconds since its last transaction."""
    ((position, since_us),) = yield from execute("wal_replayed")
    return as_int_or_none(position), as_int(since_us)
