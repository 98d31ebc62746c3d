"""Relays, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from fencerow.core.config import CoreConfig
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Param, Rows


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from fencerow.relay.removal import purges

    return purges(engine, config)


def _checks() -> Sequence[Check]:
    from fencerow.relay.checks import examine_relays

    return (Check("relays", examine_relays),)


def _commands() -> Sequence[click.Command]:
    from fencerow.relay.commands import relay

    return (relay,)


def _moved(params: Mapping[str, Param], _rows: Rows) -> Sequence[str]:
    return [f"{params['relay']!s}/{params['part']!s}"]


CHANGES = (
    ChangeByHand("pause_relay", "relay", "paused", "relay"),
    ChangeByHand("resume_relay", "relay", "resumed", "relay", shown=()),
    ChangeByHand("set_relay_position", "relay", "moved", targets=_moved, shown=("position", "again")),
    ChangeByHand("discard_unread", "relay", "unread messages discarded", "relay", shown=("ids",)),
    ChangeByHand("remove_relay", "relay", "removed", "relay", shown=()),
)
WING = Wing(
    "relay",
    queries=("fencerow.relay",),
    purges=_purges,
    used="relay_used",
    checks=_checks,
    staying={"relay_readers": "who reads is a worker with a lease, and holds it in one database"},
    declared=("relays", "relay_parts"),
    changes=CHANGES,
    commands=_commands,
)
