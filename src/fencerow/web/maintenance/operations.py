"""The operations on maintenance: begin, end, look."""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import At
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none


class Maintenance(msgspec.Struct, frozen=True):
    """Maintenance that is on: since when and by whom, why, and when callers are told to come again.

    Instants are microseconds since 1970 by the database's clock; `now_us`: when this was read.
    """

    since_us: int
    set_by: str | None
    reason: str | None
    retry_after_s: int
    now_us: int

    since = At("since_us")
    now = At("now_us")


@operation(alone=True)
def begin(*, actor: str | None, reason: str | None, retry_after_s: int) -> Steps[bool]:
    """Let gateways take no requests; false if they take none already."""
    made = yield from execute("begin_maintenance", actor=actor, reason=reason, retry_after_s=retry_after_s)
    return bool(made)


@operation(alone=True)
def end() -> Steps[bool]:
    """Let gateways take requests again; false if they do."""
    return bool((yield from execute("end_maintenance")))


@operation(alone=True, repeatable=True, writes="")
def read() -> Steps[Maintenance | None]:
    """The maintenance that is on, if one is."""
    rows = yield from execute("read_maintenance")
    if not rows:
        return None
    since, set_by, reason, retry_after_s, now = rows[0]
    return Maintenance(
        as_int(since), text_or_none(set_by), text_or_none(reason), as_int(retry_after_s), as_int(now)
    )
