"""Who has the turns of a limit, and who waits for one. Nothing here locks or changes anything."""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import At
from fencerow.db.run import Steps, execute, operation, text_or_none
from fencerow.limits.limits import LimitRecord, record_of
from fencerow.limits.locked import queue_of
from fencerow.limits.room import StartRoom, room_now
from fencerow.turns.gates import LIMIT
from fencerow.turns.keys import COUNTED_MAX, Holder, Waiter, read, waiting_at
from fencerow.turns.limiting import Held

HOLDERS_MAX = COUNTED_MAX


class LimitTurns(msgspec.Struct, frozen=True, kw_only=True):
    """A limit, or one key of it, with those who have its turns, those first who have had theirs longest, and those who
    wait, the next one first.

    Of a limit that jobs name, `queued` and `running` jobs have its turns; of that of a queue or of the fleet those that
    run, and nobody waits there but in the queue. `limit`: the definition that binds `name`; of a key it is that of the
    part before its slash, with what is remembered of the key. At most 1,000 holders are listed, and `waiting_count`
    ends at 1,000.
    """

    name: str
    limit: LimitRecord
    holders: list[Holder]
    waiting: list[Waiter]
    waiting_count: int
    now_us: int

    now = At("now_us")

    @property
    def room(self) -> StartRoom:
        """How many may start now, as far as a look without a lock tells.

        Raises:
            InvalidInput: somebody changed the row by hand, and it means nothing any more.
        """
        record = self.limit
        return room_now(record.limit, record.memory, self.now_us, self._held, wanted=COUNTED_MAX)

    @property
    def _held(self) -> Held:
        unclaimed = sum(each.started_us is None or each.started_us < each.since_us for each in self.holders)
        return Held(len(self.holders), unclaimed if queue_of(self.limit.name) is None else None)


@operation(repeatable=True, writes="", reads="both")
def look(name: str, *, limit: int) -> Steps[LimitTurns | None]:
    """Who has the turns of this limit, and the first `limit` who wait for one; None if nobody defined it."""
    found = yield from _defined(name)
    if found is None:
        return None
    queue = queue_of(name)
    if queue is None:
        rows = yield from execute("limit_holders", name=name, limit=HOLDERS_MAX)
    else:
        rows = yield from execute("limit_runners", queue=queue, limit=HOLDERS_MAX)
    waiting, count, now_us = yield from waiting_at(LIMIT + name, limit=limit)
    return LimitTurns(
        name=name,
        limit=found,
        holders=read(Holder, rows),
        waiting=waiting,
        waiting_count=count,
        now_us=now_us,
    )


def _defined(name: str) -> Steps[LimitRecord | None]:
    """The definition that binds jobs which name this; with what is remembered of the very name."""
    base, slash, _ = name.partition("/")
    rows = yield from execute("read_limits", names=[name, base] if slash else [name])
    known = {each.name: each for each in (record_of(str(row[0])) for row in rows)}
    if name in known or base not in known or not known[base].limit.per_key:
        return known.get(name)
    states = yield from execute("read_limit_state", name=name)
    state = text_or_none(states[0][0]) if states else None
    return msgspec.structs.replace(known[base], state=state)
