"""How far groups are behind, and what retention leaves of the log."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.model.job import AtOrNone
from fencerow.core.store.decoding import whole_or_none
from fencerow.db.run import Row, Steps, as_int, execute, operation

LOOK = 10_000
ALL = 2**62  # as many events as are to be kept, when there is no bound


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one group is behind. `events` stops counting at 10,000 for a partition.

    `seconds` is the age of the first event that it has not acknowledged; `waiting` are events that it put
    aside to try again, `parked` those that it gave up, each counted as far. `unplaced` events have no
    position yet, the first of them since `unplaced_s`. This lasts only moments, unless no worker gives positions.
    """

    group: str
    head: int
    cursor: int
    events: int
    seconds: float
    waiting: int
    parked: int
    readers: int
    alarmed_at_us: int | None
    unplaced: int = 0
    unplaced_s: float = 0.0

    alarmed_at = AtOrNone("alarmed_at_us")


@dataclass(frozen=True, slots=True)
class Retention:
    """What the log holds, how fast it grows, and for how long a number of events would last at that rate."""

    head: int
    per_second: float
    oldest_age_s: float | None
    lasts_s: float | None


@operation(alone=True, repeatable=True, writes="")
def lags(
    group: str | None = None, *, look: int = LOOK, after: str | None = None, limit: int | None = None
) -> Steps[list[Lag]]:
    """How far each group is behind, or this one; with a limit a page of them by name, behind the name `after`."""
    rows = yield from execute("group_lags", grp=group, look=look, after=after, groups_max=limit)
    return [_lag(row) for row in rows]


@operation(alone=True, repeatable=True, writes="")
def retention_estimate(*, keep: int | None = None) -> Steps[Retention]:
    """How fast the log grows, by its last 10,000 events, and how long `keep` events last at that rate."""
    rows = yield from execute("event_rate", look=LOOK)
    if not rows:
        return Retention(0, 0.0, None, None)
    head, events, took_us, first_us, now_us = (whole_or_none(each) or 0 for each in rows[0])
    rate = events / (took_us / 1e6) if took_us > 0 else 0.0
    lasts_s = keep / rate if keep is not None and rate > 0 else None
    return Retention(head, rate, (now_us - first_us) / 1e6, lasts_s)


@operation(repeatable=True)
def alarm(group: str) -> Steps[bool]:
    """Note that a group was told of what it will lose; false when it had been."""
    return bool((yield from execute("alarm_group", grp=group)))


@operation(repeatable=True)
def calm(group: str) -> Steps[bool]:
    """Note that a group has caught up; false when there was no alarm."""
    return bool((yield from execute("calm_group", grp=group)))


@operation(repeatable=True)
def trim(
    *, age_s: float, unread_age_s: float, told_s: float, keep: int | None = None, limit: int = 1000
) -> Steps[int]:
    """Remove some of the oldest events; a number equal to `limit` says that there may be more.

    What every group has read goes after `age_s`, or beyond the `keep` youngest. What a group has not read goes
    after `unread_age_s`, or beyond `keep`, and only if the group's alarm is older than `told_s`. What is put
    aside or parked stays.
    """
    rows = yield from execute(
        "trim_events",
        age_s=age_s,
        unread_age_s=unread_age_s,
        told_s=told_s,
        keep=ALL if keep is None else keep,
        limit=limit,
    )
    if rows:
        yield from execute("note_trimmed", trimmed=max(as_int(row[0]) for row in rows))
    return len(rows)


def _lag(row: Row) -> Lag:
    name, head, cursor, events, first_us, waiting, parked, readers, now_us, alarmed_at, unplaced, none_us = (
        row
    )
    return Lag(
        str(name),
        as_int(head),
        whole_or_none(cursor) or 0,
        as_int(events),
        _age_s(first_us, now_us),
        as_int(waiting),
        as_int(parked),
        as_int(readers),
        whole_or_none(alarmed_at),
        as_int(unplaced),
        _age_s(none_us, now_us),
    )


def _age_s(first_us: object, now_us: object) -> float:
    since_us = whole_or_none(first_us)
    return 0.0 if since_us is None else max(0.0, (as_int(now_us) - since_us) / 1e6)
