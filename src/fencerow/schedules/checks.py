"""What the doctor looks at: schedules in trouble, overdue, computed with other time zones, or ahead of their times."""

from __future__ import annotations

from collections.abc import Iterator

import fencerow.schedules.looking as looking
import fencerow.schedules.zones as zones
from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.programs import read_programs
from fencerow.schedules.shown import ScheduleRecord

SHOWN_MAX = 5
LOOKED_MAX = 10_000
OVERDUE_S = 120.0
CONTRADICTED_S = 300.0  # a worker that still does says so each minute


def examine_schedules(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many there are; and what keeps them from firing when they should."""
    yield from _contradicted(engine)
    found = engine.run(looking.read_schedules(entities=True, limit=LOOKED_MAX))
    if not found:
        return
    now_us = engine.run(looking.now_us())
    yield ok(
        "schedules",
        f"{sum(each.kind is not RowKind.HEAD for each in found)} fire, as far as they are not paused",
    )
    if zones.database_missing():
        yield warn(
            "time zones", "this machine has none, so it computes no schedule in a zone", zones.NO_DATABASE
        )
    for each in [each for each in found if each.trouble][:SHOWN_MAX]:
        yield warn(
            "schedule in trouble", f"{each.full_name}: {each.trouble}", "correct what the message names"
        )
    yield from _undeclared(found)
    yield from _overdue(found, now_us)
    yield from _zones(found)


def _contradicted(engine: Engine) -> Iterator[Finding]:
    """Two releases of a program at once, of which nobody knows which is right."""
    for each in engine.run(read_programs()):
        if each.contradicted_us is not None and each.contradicted_us > each.now_us - CONTRADICTED_S * 1e6:
            yield warn(
                "schedules declared otherwise",
                f"program {each.owner}: {each.in_words()} was declared last and counts, and a living worker "
                f"({each.contradicted_by}) declares otherwise",
                "stop the older ones, start a worker of the newest, and raise schedules_version with each change",
            )


def _undeclared(found: list[ScheduleRecord]) -> Iterator[Finding]:
    """What people paused, and what was taken away since."""
    names = [each.full_name for each in found if each.undeclared_at_us is not None]
    if names:
        more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
        yield info(
            "paused, and no longer declared",
            ", ".join(names[:SHOWN_MAX]) + more,
            "if it shall come back, run the program that declares it; else `fencerow schedules remove`",
        )


def _overdue(found: list[ScheduleRecord], now_us: int) -> Iterator[Finding]:
    late = [
        each
        for each in found
        if each.next_us is not None
        and each.kind is not RowKind.HEAD
        and each.paused_at_us is None
        and each.next_us < now_us - OVERDUE_S * 1e6
    ]
    if late:
        first = min(late, key=lambda each: each.next_us or 0)
        waited_s = (now_us - (first.next_us or 0)) / 1e6
        yield warn(
            "overdue schedules",
            f"{len(late)} should have fired, {first.full_name} {waited_s:.0f} s ago",
            "run a worker without --no-schedules",
        )


def _zones(found: list[ScheduleRecord]) -> Iterator[Finding]:
    """Workers with other rules of time zones compute other instants for the same time of the wall."""
    versions = sorted({each.zones for each in found if each.zones is not None} | {zones.tzdata_version()})
    if len(versions) > 1:
        yield info(
            "time zones of schedules",
            f"next fires were computed with several versions of the time zones: {', '.join(versions)}",
            "install the same version wherever workers run",
        )
