"""Who changes something by hand, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Via(StrEnum):
    """By what a person came to us."""

    COMMAND = "command"
    HTTP = "http"
    DASHBOARD = "dashboard"


@dataclass(frozen=True, slots=True)
class Person:
    """Who acts: a name, the way in, the network address if there is one, and the request by which logs are found.

    `reason`: why, as they said, also where what they change keeps no reason.
    """

    name: str
    via: Via
    address: str | None = None
    request_id: str | None = None
    reason: str | None = None
