"""What of webhooks is kept for how long, and what they suffer from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from fencerow.db.removal import removed
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.web.settings import WebSettings

if TYPE_CHECKING:
    from fencerow.core.config import CoreConfig
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine

PURGE_ROWS: Final = 1000


class EndpointTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, with how many of its deliveries have failed, how many wait, and since when the first of these does.

    Instants are microseconds since 1970.
    """

    name: str
    state: str
    reason: str | None
    failures: int
    open_until_us: int | None
    failed: int
    pending: int
    since_us: int | None
    now_us: int


@operation(alone=True, repeatable=True)
def purge_delivered(*, age_s: float, limit: int) -> Steps[int]:
    """Forget deliveries that arrived so long ago; returns how many."""
    return len((yield from execute("purge_delivered", age_s=age_s, limit=limit)))


@operation(repeatable=True)
def purge_removed(*, limit: int) -> Steps[int]:
    """Forget deliveries of removed endpoints, and such endpoints when none is left; returns how many deliveries."""
    count = len((yield from execute("purge_removed", limit=limit)))
    if not count:
        yield from execute("forget_removed")
    return count


@operation(alone=True, repeatable=True, writes="")
def troubles(*, look: int) -> Steps[list[EndpointTrouble]]:
    """How the endpoints stand. So many deliveries that have not arrived are looked at."""
    return [
        EndpointTrouble(
            name=str(row[0]),
            state=str(row[1]),
            reason=text_or_none(row[2]),
            failures=as_int(row[3]),
            open_until_us=as_int_or_none(row[4]),
            failed=as_int(row[5]),
            pending=as_int(row[6]),
            since_us=as_int_or_none(row[7]),
            now_us=as_int(row[8]),
        )
        for row in (yield from execute("troubled_endpoints", look=look))
    ]


def purges(engine: Engine, config: CoreConfig) -> Sequence[Purge]:
    """What each round of retention takes."""
    age_s = WebSettings.of(config).retention_webhooks_s
    rounds = (purge_delivered(age_s=age_s, limit=PURGE_ROWS), purge_removed(limit=PURGE_ROWS))
    return tuple(partial(removed, engine, each, limit=PURGE_ROWS) for each in rounds)
