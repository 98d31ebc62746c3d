"""Schedules for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import assert_never

from fencerow.schedules.cron import SECOND_US, Cron
from fencerow.schedules.evenly import Evenly

UNITS_S = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 a wall time; only the expression is explained


def in_words(times: Cron | Evenly, jitter_us: int, document: Mapping[str, object]) -> str:
    """One line: `At 09:00 on Monday through Friday, in Europe/Berlin`, `4 times an hour`, `every 15 minutes`."""
    match times:
        case Cron():
            said = f"{_explained(times.expression)}, in {times.zone_name}"
        case Evenly():
            said = _evenly(times, document)
        case _:
            assert_never(times)
    return f"{said}, delayed by up to {length(jitter_us)}" if jitter_us else said


def length(us: int) -> str:
    """The largest unit that leaves no fraction: `90 minutes`, `1 day`."""
    if us % SECOND_US:
        return f"{us / SECOND_US:g} seconds"
    seconds = us // SECOND_US
    size, name = next(unit for unit in UNITS_S if seconds % unit[0] == 0)
    return f"{seconds // size} {name}{'' if seconds == size else 's'}"


def _explained(expression: str) -> str:
    from cronsim import CronSim

    return CronSim(expression, SOME_DAY).explain()


def _evenly(times: Evenly, document: Mapping[str, object]) -> str:
    said = _rate(document) if "rate" in document else f"every {length(int(times.period))}"
    if times.spread:
        return f"{said}, spread by name and entity"
    return f"{said}, {length(times.shift_us)} behind the full one" if times.shift_us else said


def _rate(document: Mapping[str, object]) -> str:
    rate, per = document["rate"], document["per"]
    often = "once" if rate == 1 else f"{rate} times"
    return f"{often} {'an' if per == 'hour' else 'a'} {per}"
