"""The output of jobs, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine

LOOKED_AT = 500  # jobs at a look


def _settings() -> type[Settings]:
    from fencerow.output.settings import OutputSettings

    return OutputSettings


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import RemovalInRounds
    from fencerow.output.settings import OutputSettings
    from fencerow.output.storing import NOWHERE, purge

    age_s = OutputSettings.of(config).retention_output_s
    return (RemovalInRounds(engine, partial(purge, age_s=age_s, limit=LOOKED_AT), NOWHERE).round,)


def _commands() -> Sequence[click.Command]:
    from fencerow.output.commands import output

    return (output,)


WING = Wing(
    "output",
    queries=("fencerow.output",),
    purges=_purges,
    used="output_used",
    commands=_commands,
    settings=_settings,
)
