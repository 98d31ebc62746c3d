"""Flows, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.model.job import NewJob
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Steps


def _settings() -> type[Settings]:
    from fencerow.flows.settings import FlowSettings

    return FlowSettings


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import removed
    from fencerow.flows.removal import FLOWS_MAX, purge
    from fencerow.flows.settings import FlowSettings

    age_s = FlowSettings.of(config).flow_retention_s
    return (partial(removed, engine, purge(age_s=age_s, limit=FLOWS_MAX), limit=FLOWS_MAX),)


def _stored(jobs: Sequence[NewJob], *, again: bool) -> Steps[None]:  # noqa: ARG001 - a flow that is there stays
    from fencerow.flows.storing import store_beside

    return store_beside(jobs)


def _checks() -> Sequence[Check]:
    from fencerow.flows.checks import examine_flows

    return (Check("flows", examine_flows),)


def _commands() -> Sequence[click.Command]:
    from fencerow.flows.commands import flows

    return (flows,)


CHANGES = (
    ChangeByHand("ask_flow_cancel", "flow", "cancelled", "id", shown=()),
    ChangeByHand("reopen_flow", "flow", "revived", "id", shown=()),
)
WING = Wing(
    "flows",
    queries=("fencerow.flows",),
    stored=_stored,
    purges=_purges,
    used="flows_used",
    checks=_checks,
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
