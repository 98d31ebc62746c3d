"""What the doctor looks at: schedules in trouble, overdue, computed with other time zones, or ahead of their times.

It looks at all of them, however many there are, and names the first few.
"""

from __future__ import annotations

from collections.abc import Iterator

import fencerow.calendar.zones as zones
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.db.engine import Engine
from fencerow.schedules.examined import Examined, Notable, examine
from fencerow.schedules.programs import read_programs

SHOWN_MAX = 5
OVERDUE_S = 120.0
AHEAD_S = 60.0
CONTRADICTED_S = 300.0  # a worker that still does says so each minute


def examine_schedules(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many there are; and what keeps them from firing when they should."""
    yield from _contradicted(engine)
    found = engine.run(examine(overdue_s=OVERDUE_S, ahead_s=AHEAD_S, limit=SHOWN_MAX))
    if not found.are_there:
        return
    yield ok("schedules", f"{found.count} fire, unless they are paused")
    if zones.database_missing():
        yield warn(
            "time zones", "this machine has none, so it computes no schedule in a zone", zones.NO_DATABASE
        )
    for each in found.of("trouble"):
        yield warn(
            "schedule in trouble", f"{each.full_name}: {each.trouble}", "correct what the message names"
        )
    if found.troubled > SHOWN_MAX:
        more = f"{found.troubled - SHOWN_MAX} more schedules are in trouble"
        yield warn("schedule in trouble", more, "`fencerow schedules list --entities` shows them")
    yield from _undeclared(found)
    yield from _overdue(found)
    yield from _ahead(found.of("ahead"))
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


def _undeclared(found: Examined) -> Iterator[Finding]:
    """What people paused, and what was taken away since."""
    if names := [each.full_name for each in found.of("undeclared")]:
        more = f" and {found.undeclared - len(names)} more" if found.undeclared > len(names) else ""
        yield info(
            "paused, and no longer declared",
            ", ".join(names) + more,
            "if it is to come back, run the program that declares it; else `fencerow schedules remove`",
        )


def _overdue(found: Examined) -> Iterator[Finding]:
    for first in found.of("overdue"):
        waited_s = (found.now_us - (first.next_us or 0)) / 1e6
        yield warn(
            "overdue schedules",
            f"{found.overdue} should have fired, {first.full_name} {waited_s:.0f} s ago",
            "run a worker without --no-schedules",
        )


def _ahead(found: list[Notable]) -> Iterator[Finding]:
    """The database's clock was ahead when they fired."""
    if found:
        more = " and perhaps more" if len(found) == SHOWN_MAX else ""
        yield warn(
            "schedules ahead of their times",
            f"{', '.join(each.full_name for each in found)}{more} fired while the database's clock was ahead, and "
            "wait until that time has come again",
            "once the clock is right: `fencerow schedules pause`, then `resume`; that sets the next fire again",
        )


def _zones(found: Examined) -> Iterator[Finding]:
    """Workers with other rules of time zones compute other instants for the same time of the wall."""
    versions = sorted(found.zones | {zones.tzdata_version()})
    if len(versions) > 1:
        yield info(
            "time zones of schedules",
            f"next fires were computed with several versions of the time zones: {', '.join(versions)}",
            "install the same version wherever workers run",
        )
