"""A webhook of another system, as the job gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class InboundWebhook:
    """What a sender told, once it was verified.

    `id` is the sender's: the same when it sends the webhook again. `kind` says what it tells, as the sender calls it;
    empty where it says nothing. `sent_at`: when it was signed; None where the scheme signs no time. `payload` is the
    JSON of the body. `headers` are those that the declaration chose, by their names in lower case.
    """

    hook: str
    id: str
    kind: str = ""
    payload: Any = None
    sent_at: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
