"""Shares, a page at a time: of many shares nobody reads all to see some."""

from __future__ import annotations

from fencerow.core.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.core.store.shares import ShareRecord


@operation(alone=True, repeatable=True, writes="")
def shares_page(queue: str, share: str, *, limit: int) -> Steps[list[ShareRecord]]:
    """The shares behind this one, by queue and name. Behind two empty texts stand all."""
    rows = yield from execute("shares_page", queue=queue, share=share, limit=limit)
    return [
        ShareRecord(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), as_int(row[4]), as_int_or_none(row[5]),
            as_int_or_none(row[6]), text_or_none(row[7]), as_int(row[8]),
        )
        for row in rows
    ]  # fmt: skip
