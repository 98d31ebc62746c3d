"""Reading schedules: one, those of a name with their entities, or all."""

from __future__ import annotations

import msgspec

from fencerow.db.run import Rows, Steps, as_int, as_int_or_none, execute, first_column, operation
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.shown import ScheduleRecord, record_of


@operation(repeatable=True, writes="")
def read_schedules(
    *, name: str | None = None, entity: str | None = None, entities: bool = False, after: tuple[str, str] = ("", ""),
    limit: int = 1000
) -> Steps[list[ScheduleRecord]]:  # fmt: skip
    """Schedules in the order of their names; heads say how many entities they have. With `entities` these as well."""
    rows = yield from execute(
        "read_schedules",
        name=name,
        entity=entity,
        entities=entities or entity is not None,
        after_name=after[0],
        after_entity=after[1],
        limit=limit,
    )
    found = [record_of(row) for row in rows]
    if not any(each.kind is RowKind.HEAD for each in found):
        return found
    counts = _counts((yield from execute("count_entities", name=name)))
    return [
        msgspec.structs.replace(each, **counts[each.name])
        if each.kind is RowKind.HEAD and each.name in counts
        else each
        for each in found
    ]


@operation(alone=True, repeatable=True, writes="")
def schedule_names() -> Steps[list[str]]:
    """The names that there are."""
    return first_column((yield from execute("schedule_names")))


@operation(alone=True, repeatable=True, writes="")
def now_us() -> Steps[int]:
    """The database's time."""
    return as_int((yield from execute("schedules_now"))[0][0])


def _counts(rows: Rows) -> dict[str, dict[str, int | None]]:
    return {
        str(name): {
            "entities": as_int(count),
            "paused_entities": as_int(paused),
            "next_us": as_int_or_none(next_us),
            "last_us": as_int_or_none(last_us),
        }
        for name, count, paused, next_us, last_us in rows
    }
