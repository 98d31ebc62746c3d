"""The settings of the audit log, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number
from fencerow.core.model.defaults import DAY_S


@dataclass(frozen=True, kw_only=True)
class AuditSettings(Settings):
    """How long it is kept."""

    retention_audit_s: float = number(
        365 * DAY_S, 60.0, 3650 * DAY_S, "How long the audit log keeps what people changed by hand."
    )
