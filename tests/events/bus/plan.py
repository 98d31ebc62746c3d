"""What a load consists of, and what every process is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

LONG_S = 0.5  # a long transaction; some take several times as long
GROUPS = ("ledger", "mail")  # exactly once in the event's transaction, and at least once


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One load. `events` are those that are committed."""

    url: str
    folder: str
    events: int
    publishers: int
    drainers: int
    kills: int
    seed: int
    keys: int = 100
    aborts: float = 0.15
    lease_s: float = 6.0

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgres")

    def told(self) -> str:
        return msgspec.json.encode(self).decode()

    @staticmethod
    def of(text: str) -> Plan:
        return msgspec.json.decode(text, type=Plan)


@dataclass(frozen=True)
class Ground:
    """Where the user's own tables lie: in the schema that the test's role owns, or in the file."""

    plan: Plan

    def table(self, name: str) -> str:
        return f"fencerow.bus_{name}" if self.plan.is_postgres else f"bus_{name}"

    @property
    def mark(self) -> str:
        """How a parameter is written."""
        return "%s" if self.plan.is_postgres else "?"

    def sink(self, pid: int) -> Path:
        """Where a drainer writes what it was given, beyond every transaction."""
        return Path(self.plan.folder) / f"delivered-{pid}.jsonl"
