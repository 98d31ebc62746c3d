"""Migrations and backfills of users' databases, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def _commands() -> Sequence[click.Command]:
    from fencerow.migrations.backfills.commands import backfills
    from fencerow.migrations.commands import shards

    return backfills, shards


CHANGES = (
    ChangeByHand("pause_backfill", "backfill", "paused", "name", shown=()),
    ChangeByHand("resume_backfill", "backfill", "resumed", "name", shown=()),
    ChangeByHand("forget_backfill", "backfill", "forgotten", "name", shown=()),
)
WING = Wing("migrations", queries=("fencerow.migrations.backfills",), changes=CHANGES, commands=_commands)
