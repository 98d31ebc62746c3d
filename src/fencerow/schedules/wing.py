"""Schedules, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.model.outcome import Released
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Param, Rows

PURGE_ROWS = 1000


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import removed
    from fencerow.schedules.settings import ScheduleSettings
    from fencerow.schedules.ticking import note_ended, purge_ticks

    age_s = ScheduleSettings.of(config).retention_ticks_s
    rounds = (note_ended(limit=PURGE_ROWS), purge_ticks(age_s=age_s, limit=PURGE_ROWS))
    return tuple(partial(removed, engine, each, limit=PURGE_ROWS) for each in rounds)


def _checks() -> Sequence[Check]:
    from fencerow.schedules.checks import examine_schedules

    return (Check("schedules", examine_schedules),)


def _commands() -> Sequence[click.Command]:
    from fencerow.schedules.backfilling import backfill
    from fencerow.schedules.changing import reconcile, refresh, set_
    from fencerow.schedules.commands import schedules

    for each in (set_, reconcile, refresh, backfill):
        schedules.add_command(each)
    return (schedules,)


def _hold(headers: Mapping[str, str], now_us: int) -> Released | None:
    from fencerow.schedules.holding import hold

    return hold(headers, now_us)


def _settings() -> type[Settings]:
    from fencerow.schedules.settings import ScheduleSettings

    return ScheduleSettings


def _run(params: Mapping[str, Param], _rows: Rows) -> Sequence[str]:
    import msgspec

    runs = msgspec.json.decode(str(params["runs"]))
    return [each["name"] + (f"/{each['entity']}" if each["entity"] else "") for each in runs]


CHANGES = (
    ChangeByHand("pause_schedules", "schedule", "paused", "name", shown=("entity", "reason")),
    ChangeByHand("resume_schedules", "schedule", "resumed", "name", shown=()),
    ChangeByHand(
        "resume_undeclared", "schedule", "resumed, and removed as nobody declares it", "name", shown=()
    ),
    ChangeByHand("remove_schedule", "schedule", "removed", "name", shown=("entity",)),
    ChangeByHand("note_run", "schedule", "run now", targets=_run, always=True, shown=()),
)
WING = Wing(
    "schedules",
    queries=("fencerow.schedules",),
    hold=_hold,
    purges=_purges,
    used="schedules_used",
    checks=_checks,
    declared=("schedules", "schedule_programs"),
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
