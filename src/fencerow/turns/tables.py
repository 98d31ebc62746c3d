"""The tables of who has turns and who waits for one, of a key or of a limit."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.times import Times
from fencerow.turns.keys import Holder, Waiter
from fencerow.turns.telling import doing

HOLDERS = (
    Column("has a turn", short=True),
    Column("job", least=8),
    Column("queue", least=8, rank=2),
    Column("attempt", rank=3),
    Column("since", rank=1),
    Column("now", least=20, folds=True),
)
WAITERS = (
    Column("waits", short=True),
    Column("job", least=8),
    Column("queue", least=8, rank=1),
    Column("priority", rank=2),
    Column("due"),
)
STRICT = Column("strict", rank=3)


def say_turns(
    holders: Sequence[Holder],
    waiters: Sequence[Waiter],
    at: Times,
    *,
    full: bool,
    with_strict: bool = False,
) -> None:
    """Who has a turn, and who waits, the next one first; a table that would be empty is left out."""
    columns = (*WAITERS, STRICT) if with_strict else WAITERS
    for head, rows in (
        (HOLDERS, [_holder(each, at) for each in holders]),
        (columns, [_waiter(each, at)[: len(columns)] for each in waiters]),
    ):
        if rows:
            output.say()
            output.table(head, rows, full=full)


def _holder(found: Holder, at: Times) -> tuple[object, ...]:
    return (
        found.id,
        found.name,
        found.queue,
        found.attempt or None,
        at.when(found.since_us),
        doing(found, at.now_us),
    )


def _waiter(found: Waiter, at: Times) -> tuple[object, ...]:
    due = f"{at.when(found.run_at_us)}{', queue paused' if found.paused else ''}"
    return (found.id, found.name, found.queue, found.priority, due, "yes" if found.strict else None)
