"""Sagas, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine

LOOKED_AT = 1000  # sagas at a look


def _purges(engine: Engine, _config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.saga.storing import NOWHERE, purge

    return (RemovalInRounds(engine, partial(purge, limit=LOOKED_AT), NOWHERE).round,)


def _checks() -> Sequence[Check]:
    from fencerow.saga.checks import examine_sagas

    return (Check("saga", examine_sagas),)


def _commands() -> Sequence[click.Command]:
    from fencerow.saga.commands import saga

    return (saga,)


WING = Wing(
    "saga", queries=("fencerow.saga",), purges=_purges, used="sagas_used", checks=_checks, commands=_commands
)
