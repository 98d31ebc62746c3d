"""Turns of exclusive keys and limits, and waits for labels, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import CoreConfig
    from fencerow.core.offered import Options
    from fencerow.core.store.gating import Gating
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Operation

GATES = 5000  # that a removal looks at
USED = "turns_used"


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.core.background.dormant import Dormant
    from fencerow.core.model.wakeup import Arrived

    def hander() -> Chore:
        from fencerow.turns.hander import Hander

        return Hander(site)

    def falling_back() -> Chore:
        from fencerow.turns.falling_back import FallBack

        return FallBack(site)

    def engine() -> Engine:
        return site.engine

    every_s = site.config.poll_max_s
    return (
        Dormant("turns", engine, USED, hander, every_s=every_s, jitter=0.0, hears=(Arrived,)),
        Dormant("labels", engine, "next_fall_back", falling_back, every_s=every_s, jitter=0.0),
    )


def _offers() -> Options:
    from fencerow.turns.options import TurnOptions

    return TurnOptions()


def _gating() -> Gating:
    from fencerow.turns.gating import Gates

    return Gates()


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.turns.looks import forget_gates

    return (RemovalInRounds(engine, partial(forget_gates, limit=GATES), "").round,)


def _commands() -> Sequence[click.Command]:
    from fencerow.turns.commands import exclusive

    return (exclusive,)


def _checks() -> Sequence[Check]:
    from fencerow.turns.checks import examine_keys

    return (Check("exclusive keys", examine_keys),)


def _queues_soon() -> Operation[bool]:
    from fencerow.turns.looks import any_soon

    return any_soon()


WING = Wing(
    "turns",
    queries=("fencerow.turns",),
    options=("exclusive", "exclusive_at_once", "strict", "limits", "share", "affinity", "affinity_wait_s"),
    offers=_offers,
    gating=_gating,
    chores=_chores,
    queues_soon=_queues_soon,
    purges=_purges,
    used=USED,
    checks=_checks,
    commands=_commands,
)
