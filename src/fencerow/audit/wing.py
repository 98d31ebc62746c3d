"""The audit log, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.model.person import Person
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine

PURGE_ROWS = 1000


def _witness(engine: Engine, person: Person) -> Engine:
    from fencerow.audit.engine import AuditedEngine

    return AuditedEngine(engine, person)


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.audit.operations import purge
    from fencerow.audit.settings import AuditSettings
    from fencerow.db.removal import removed

    age_s = AuditSettings.of(config).retention_audit_s
    return (partial(removed, engine, purge(age_s=age_s, limit=PURGE_ROWS), limit=PURGE_ROWS),)


def _commands() -> Sequence[click.Command]:
    from fencerow.audit.commands import audit

    return (audit,)


def _settings() -> type[Settings]:
    from fencerow.audit.settings import AuditSettings

    return AuditSettings


WING = Wing(
    "audit",
    queries=("fencerow.audit",),
    purges=_purges,
    used="audit_used",
    witness=_witness,
    commands=_commands,
    settings=_settings,
)
