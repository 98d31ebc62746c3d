"""The guards for users' own tables, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from fencerow.guards.purges import purges

    return purges(engine, config)


def _checks() -> Sequence[Check]:
    from fencerow.guards.mutex.checks import examine_mutexes
    from fencerow.guards.once.checks import examine_leftovers

    return Check("leftovers", examine_leftovers), Check("mutexes", examine_mutexes)


def _commands() -> Sequence[click.Command]:
    from fencerow.guards.mutex.commands import mutexes

    return (mutexes,)


def _settings() -> type[Settings]:
    from fencerow.guards.settings import GuardSettings

    return GuardSettings


CHANGES = (ChangeByHand("free_mutex", "mutex", "taken from its holder", "key"),)
WING = Wing(
    "guards",
    queries=(
        "fencerow.guards.mutex",
        "fencerow.guards.once",
        "fencerow.guards.replace",
        "fencerow.guards.transitions",
    ),
    purges=_purges,
    used="guards_used",
    checks=_checks,
    staying={"row_leases": "of rows of your own tables, which each database names in its own way"},
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
