"""The claim that waits for a locked row, where all others pass it over."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.errors import Busy
from fencerow.core.model.job import Claimed
from fencerow.core.model.lane import ANYBODYS
from fencerow.core.store.claims import Mark, claim
from fencerow.db.due import OWN, Due
from fencerow.db.run import Steps, as_int, execute, operation


@operation()
def claim_passed_over(
    queue: str,
    priority: int,
    lane: str = ANYBODYS,
    *,
    holder: str,
    names: Sequence[str],
    margin_s: float,
    wait_ms: int,
    locked_only: bool = False,
    due: Due = OWN,
    bounded: bool = False,
) -> Steps[list[Claimed]]:
    """Take the job that is due first in this lane; wait up to `wait_ms` milliseconds if somebody has locked its row.

    `locked_only`: take none that nobody has locked, where turns decide who is next. All else as in `claim`.
    PostgreSQL only: elsewhere nobody is passed over.

    Raises:
        Busy: the row stayed locked. Nothing is claimed.
    """
    yield from execute("wait_for_locks", wait_ms=wait_ms)
    try:
        locked = yield from execute(
            "lock_passed_over",
            queue=queue,
            priority=priority,
            lane=lane,
            names=list(names),
            locked_only=int(locked_only),
            due_us=due.until_us,
            since_us=due.since_us,
        )
        if not locked:
            return []
        mark = Mark(priority, as_int(locked[0][0]) - 1, lane=lane)
        return (
            yield from claim(
                queue,
                [mark],
                holder=holder,
                names=names,
                limit=1,
                margin_s=margin_s,
                due=due,
                bounded=bounded,
            ).steps()
        )
    except Exception as error:
        # Not before there is trouble: what runs on SQLite never needs the driver.
        from fencerow.db.faults import CONTENTION, first_line

        if not isinstance(error, CONTENTION):
            raise
        raise Busy(  # an error of the library is not tried again at once, as that of the driver would be
            f"the job that is due first in queue {queue!r} stays locked",
            first_line(error),
            "look again later",
        ) from error
