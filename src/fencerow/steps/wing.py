"""Durable steps, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Operation

LOOKED_AT = 1000  # jobs at a look
LOOK_S = 1.0  # how often a worker looks whether a job waits for a time


def _chores(site: Site) -> Sequence[Chore]:
    from fencerow.core.background.dormant import Dormant

    def waker() -> Chore:
        from fencerow.steps.waker import Waker

        return Waker(site)

    return (Dormant("steps", lambda: site.engine, "steps_used", waker, every_s=LOOK_S, jitter=0.0),)


def _queues_soon() -> Operation[bool]:
    from fencerow.steps.waker import any_wait_due

    return any_wait_due()


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.steps.memory import NOWHERE, purge

    return (RemovalInRounds(engine, partial(purge, limit=LOOKED_AT), NOWHERE).round,)


def _settings() -> type[Settings]:
    from fencerow.steps.settings import StepSettings

    return StepSettings


def _checks() -> Sequence[Check]:
    from fencerow.steps.checks import examine_steps

    return (Check("steps", examine_steps),)


def _commands() -> Sequence[click.Command]:
    from fencerow.steps.commands import signal, steps

    return (steps, signal)


CHANGES = (
    ChangeByHand("send_signal", "job", "signalled", "id", shown=("name",)),
    ChangeByHand("answer_approval", "job", "answered", shown=("answer",)),
    ChangeByHand("forget_steps", "job", "revived from a step", "id", shown=()),
)
WING = Wing(
    "steps",
    queries=("fencerow.steps",),
    chores=_chores,
    queues_soon=_queues_soon,
    purges=_purges,
    checks=_checks,
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
