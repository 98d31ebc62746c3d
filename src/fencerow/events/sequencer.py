"""The sequencer: gives committed events their places, so that a reader who goes by place misses none.

Ids are given while a transaction is under way, and a lower one may commit later: who reads `id > cursor` loses
events. So readers go by `seq`, which is given afterwards, by one transaction after another under a lock. It looks
only at what has committed, and never asks what else is under way: a long transaction delays no event of others.

What it remembers spares it the dead rows at the head of its index. An id that it found missing below its mark is a
gap: rolled back, or still to be committed. Each look takes the gaps along, in the same snapshot, since an event of a
gap goes before one of its key that was published after its commit. A gap is closed when all transactions are over
that could fill it: whoever publishes takes a transaction number before an id, so those have lower numbers than one
that was given after the look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from fencerow.db.locks import lock_number, take_lock, try_lock
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation

LOCK = lock_number("events", "sequencer")
BATCH_ROWS = 1000
GAPS_MAX = 2000
SETTLE_IDS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """Ids that were not there, from `low` to `high`. Nobody has them once all numbers below `until` are over."""

    low: int
    high: int
    until: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What a sequencer knows of the log. Every event with an id up to `mark` has its place, or lies in a gap."""

    mark: int
    gaps: tuple[Gap, ...] = ()
    noted: int = 0  # what the log's own mark says

    @property
    def settled(self) -> int:
        """Up to here nothing can come any more."""
        return self.gaps[0].low - 1 if self.gaps else self.mark


@dataclass(frozen=True, slots=True)
class Sequenced:
    """What a look came to: events that got a place, whether there may be more, and what to remember."""

    count: int
    has_more: bool
    memory: Memory | None


@operation(repeatable=True)
def sequence(memory: Memory | None = None, *, limit: int = BATCH_ROWS, wait: bool = True) -> Steps[Sequenced]:
    """Give the next places. Without a memory it begins where the log is settled.

    After an error the memory is worth nothing: begin without. With `wait=False` it gives way to another that
    is at it. May be repeated.
    """
    if wait:
        yield from take_lock(LOCK)
    elif not (yield from try_lock(LOCK)):
        return Sequenced(0, True, memory)
    return (yield from _look(memory, limit))


def sequence_all() -> Steps[None]:
    """Give places to all that has committed: part of another operation, at whose begin it must stand."""
    yield from take_lock(LOCK)
    while (yield from _look(None, BATCH_ROWS, settle=False)).has_more:
        pass


@operation(alone=True, repeatable=True, writes="")
def log_head() -> Steps[int]:
    """The greatest place that was ever given."""
    return (yield from head())


def head() -> Steps[int]:
    """The same as part of other operations."""
    return as_int((yield from execute("head_of_events"))[0][0])


def _look(memory: Memory | None, limit: int, settle: bool = True) -> Steps[Sequenced]:
    if memory is None:
        # A statement of its own, after the lock: what others have settled is known.
        settled = as_int((yield from execute("read_settled"))[0][0])
        memory = Memory(settled, noted=settled)
    rows = yield from execute(
        "sequence_events",
        mark=memory.mark,
        lows=[gap.low for gap in memory.gaps],
        highs=[gap.high for gap in memory.gaps],
        limit=limit,
    )
    count, last, late, gaps, number, oldest = rows[0]
    came: list[int] = _decoded(late)
    memory = remembered(
        memory,
        last=as_int_or_none(last),
        late=came,
        fresh=_decoded(gaps),
        number=0 if number is None else as_int(number),
        # What did not fit into this look lies in the gaps still.
        oldest=0 if len(came) >= limit else as_int(oldest),
    )
    if settle and memory.settled >= memory.noted + SETTLE_IDS:
        yield from execute("settle_events", settled=memory.settled)
        memory = replace(memory, noted=memory.settled)
    return Sequenced(as_int(count), as_int(count) >= limit, memory)


def remembered(
    memory: Memory,
    *,
    last: int | None,
    late: list[int],
    fresh: list[list[int]],
    number: int,
    oldest: int,
) -> Memory:
    """What is to be remembered after a look.

    `last`: the greatest id after the mark that was placed; `late`: ids placed in gaps; `fresh`: the gaps up to
    `last`, which nobody can fill any more once all numbers below `number` are over; `oldest`: the oldest
    that is under way.
    """
    gaps = [gap for old in memory.gaps for gap in _without(old, late) if gap.until > oldest]
    gaps += [Gap(low, high, number) for low, high in fresh]
    if len(gaps) > GAPS_MAX:
        # Some become one, with what is between them: that costs a longer look, never an event.
        half = gaps[: GAPS_MAX // 2]
        gaps = [Gap(half[0].low, half[-1].high, max(gap.until for gap in half)), *gaps[GAPS_MAX // 2 :]]
    return Memory(memory.mark if last is None else last, tuple(gaps), memory.noted)


def _without(gap: Gap, ids: list[int]) -> list[Gap]:
    """What is left of a gap when these ids have come."""
    inside = [each for each in ids if gap.low <= each <= gap.high]
    left, low = [], gap.low
    for each in sorted(inside):
        if each > low:
            left.append(Gap(low, each - 1, gap.until))
        low = each + 1
    if low <= gap.high:
        left.append(Gap(low, gap.high, gap.until))
    return left


def _decoded(text: object) -> list[Any]:
    return [] if text is None else list(msgspec.json.decode(str(text)))
