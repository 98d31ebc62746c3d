"""What may be said with a submit through a gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from fencerow.core.model.misfit import refuse_unknown
from fencerow.core.model.seconds import Seconds, in_seconds


class RemoteOptions(TypedDict, total=False):
    """The options of one submit. None means the same as no option; docs/guide.md has what each means."""

    id: str | None
    key: str | None
    scope: str | None
    key_lifetime_s: Seconds | None
    delay_s: Seconds | None
    run_at: datetime | None
    queue: str | None
    priority: int | None
    attempts_max: int | None
    timeout_s: Seconds | None
    expires_s: Seconds | None
    retention_s: Seconds | None
    ephemeral: bool | None
    exclusive: str | None
    limits: Sequence[str] | None
    share: str | None
    affinity: str | None
    affinity_wait_s: Seconds | None
    unique: str | None
    handover: str | Mapping[str, str] | None
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None


def said(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are sent: those that were said.

    Raises:
        WrongCall: one is unknown.
    """
    refuse_unknown(options, RemoteOptions.__annotations__, "a submit")
    return {
        name: in_seconds(value) if isinstance(value, timedelta) else value
        for name, value in options.items()
        if value is not None
    }
