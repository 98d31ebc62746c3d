"""Our own schema, room by room, and backfills of users' tables: how far each is; pause one, let it go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from fencerow.core.errors import Busy
from fencerow.core.schema.building import broken, progress
from fencerow.core.schema.migrate import Applied, index_names, ledger, ledger_name
from fencerow.core.schema.rooms import packages
from fencerow.db.migration import Migration, migrations
from fencerow.db.run import ask
from fencerow.migrations.backfills import operations as backfills
from fencerow.migrations.backfills.backfill import resume as resume_backfill
from fencerow.migrations.backfills.backfill import unknown
from fencerow.migrations.backfills.status import BackfillStatus
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

LANES_SHOWN = 200


class SchemaRoom(msgspec.Struct, frozen=True):
    """A room that has tables: its migrations, which of them are missing, and which were changed since they ran."""

    name: str
    newest: str
    migrations: int
    missing: list[str]
    altered: list[str]


async def migrating(look: Look) -> dict[str, Any]:
    """Six statements at most: the ledger, indexes that are not whole or are built now, the clock, the backfills."""
    engine, client = look.client.engine, look.client
    name = ledger_name(engine)
    applied = await client.arun(ask(ledger(name)))
    rooms = rooms_of(engine.dialect, applied)
    indexes, building = [], None
    if engine.traits.has_server:
        known = [each for package in packages() for each in migrations(package, engine.dialect)]
        indexes = [each.name for each in await client.arun(ask(broken(name, index_names(known))))]
        building = await client.arun(ask(progress(name)))
    now_us = await look.now_us()
    return {
        "now_us": now_us,
        "rooms": rooms,
        "newer": sorted(each.version for each in applied if each.version not in _versions(engine.dialect)),
        "broken": indexes,
        "building": building,
        "backfills": await _backfills(look),
    }


def rooms_of(dialect: str, applied: Sequence[Applied]) -> list[SchemaRoom]:
    """Each room that has migrations, and what is missing there."""
    ran = {each.version: each.checksum for each in applied}
    found = []
    for package in packages():
        own = migrations(package, dialect)
        if own:
            missing = [_named(each) for each in own if each.version not in ran]
            altered = [_named(each) for each in own if ran.get(each.version, each.checksum) != each.checksum]
            found.append(
                SchemaRoom(package.removeprefix("fencerow."), _named(own[-1]), len(own), missing, altered)
            )
    return found


def _versions(dialect: str) -> set[int]:
    return {each.version for package in packages() for each in migrations(package, dialect)}


def _named(migration: Migration) -> str:
    return f"{migration.version:04d} {migration.name.replace('_', ' ')}"


async def _backfills(look: Look) -> list[BackfillStatus] | None:
    """All backfills; None where they have more lanes than a page may read. Asked last, for then nothing may be read."""
    try:
        lanes = await look.client.arun(ask(backfills.lanes_of(None)))
    except Busy:
        return None
    return [BackfillStatus.of(list(group)) for _, group in groupby(lanes, key=lambda lane: lane.name)]


async def backfill(look: Look) -> dict[str, Any]:
    """Two statements: the lanes of one backfill, and the clock."""
    name = look.query.get("name", "")
    lanes = await look.client.arun(ask(backfills.lanes_of(name)))
    if not lanes:
        raise unknown(name)
    return {
        "now_us": await look.now_us(),
        "backfill": BackfillStatus.of(lanes),
        "lanes": lanes[:LANES_SHOWN],
        "hidden": max(0, len(lanes) - LANES_SHOWN),
    }


async def pause(act: Act) -> PressAnswer:
    """Stop it after the ranges that are under way."""
    name = act.form.get("name", "")
    if await act.client.arun(ask(backfills.pause(name))):
        return PressAnswer(f"{name} is paused. The ranges that are under way come to their end.")
    if not await act.client.arun(ask(backfills.lanes_of(name))):
        raise unknown(name)
    return PressAnswer(f"{name} was not running, and stays as it was.", changed=False)


async def resume(act: Act) -> PressAnswer:
    """Go on with all that is not done. Only an application that declares the backfill knows its job."""
    name = act.form.get("name", "")
    lanes = await asyncio.to_thread(resume_backfill, act.app, act.client.engine, name)
    if not lanes:
        return PressAnswer(f"{name} is done, and stays so.", changed=False)
    return PressAnswer(f"{name} goes on.")


ACTIONS = (Action("/migrations/pause", pause), Action("/migrations/resume", resume))
SCREENS = (
    Screen(
        "migrations", "/migrations", "Migrations", migrating,
        section=Section.SYSTEM, place=215, key="m", actions=ACTIONS,
    ),
    Screen("backfill", "/migrations/backfill", "Backfill", backfill, place=216),
)  # fmt: skip
