"""Shares, a page at a time: of many shares nobody reads all to see some, and of many jobs nobody counts all."""

from __future__ import annotations

import msgspec

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation
from fencerow.web.dashboard.counting import COUNTED_MAX


class ShareStanding(msgspec.Struct, frozen=True):
    """A share as a page shows it.

    Of each at most `COUNTED_MAX` + 1 queued jobs are counted, and as many running jobs of all together: where more run,
    `is_more` says that `running` may be too low.
    """

    queue: str
    share: str
    weight: int
    queued: int
    running: int
    first_us: int | None
    is_more: bool


@operation(alone=True, repeatable=True, writes="")
def shares_page(queue: str, share: str, *, limit: int) -> Steps[list[ShareStanding]]:
    """The shares behind this one, by queue and name. Behind two empty texts stand all."""
    rows = yield from execute("shares_page", queue=queue, share=share, limit=limit, most=COUNTED_MAX + 1)
    return [
        ShareStanding(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), as_int(row[4]), as_int_or_none(row[5]),
            bool(row[6]),
        )
        for row in rows
    ]  # fmt: skip
