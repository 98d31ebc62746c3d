"""Who holds back the horizon, and what that costs; read, and ended only if it still is what was seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from fencerow.db.run import Steps, as_int, as_int_or_none, execute, first_column, operation
from fencerow.db.text import amount

PATIENCE_S = 2.0


class Holder(msgspec.Struct, frozen=True):
    """One that keeps dead rows from being removed. `kind`: session, prepared transaction, standby, replication slot.

    `since_us`: when its transaction began, in microseconds since 1970; None of a slot. `query_us`: when its latest
    query began. `xids`: how many transactions have begun since. `may_end`: whether this role may end it.
    """

    kind: str
    who: str | None
    pid: int | None
    application: str | None
    client: str | None
    state: str | None
    since_us: int | None
    query_us: int | None
    xids: int | None
    may_end: bool | None

    @property
    def named(self) -> str:
        """Who it is, in a few words."""
        application = f" ({self.application})" if self.application else ""
        pid = f", pid {self.pid}" if self.pid else ""
        client = f", from {self.client}" if self.client else ""
        return f"{self.kind} of {self.who or 'another role'}{application}{pid}{client}"

    def age_s(self, now_us: int) -> float | None:
        """For how long it has held back the horizon; None of a slot."""
        return None if self.since_us is None else (now_us - self.since_us) / 1e6


@dataclass(frozen=True, slots=True)
class HorizonCost:
    """What that costs: dead rows of the live jobs, as the statistics have it. `blocks`: how many the look for the first
    queued job reads; None: not measured."""

    dead: int
    live: int
    vacuumed_us: int | None
    now_us: int
    blocks: int | None = None

    @property
    def told(self) -> str:
        """In a sentence, for people."""
        found = f"{amount(self.dead, 'dead row')} beside {amount(self.live, 'live job')}"
        if self.blocks is None:
            return found
        return f"{found}; the look for the first queued job reads {amount(self.blocks, 'block')}, where 4 suffice"


_holders = msgspec.json.Decoder(list[Holder])


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def holders() -> Steps[list[Holder]]:
    """Who holds back the horizon, the furthest first. Without pg_read_all_stats others' sessions are hidden."""
    return _holders.decode(str((yield from execute("horizon_holders"))[0][0]))


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def cost() -> Steps[HorizonCost]:
    """Dead rows, and the clock of the server."""
    ((dead, live, vacuumed_us, now_us),) = yield from execute("horizon_cost")
    return HorizonCost(as_int(dead), as_int(live), as_int_or_none(vacuumed_us), as_int(now_us))


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def blocks() -> Steps[int]:
    """How many blocks the look for the first queued job reads. It is played once."""
    found: Any = (yield from execute("horizon_blocks"))[0][0]
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@operation()
def end_session(holder: Holder) -> Steps[list[str]]:
    """End it, if it is still in the transaction that was seen; returns its name, or nothing."""
    return first_column(
        (yield from execute("end_session", pid=holder.pid, since_us=holder.since_us, name=holder.named))
    )


def is_allowed(holder: Holder, allow: str | None) -> bool:
    """Whether a policy names this session: by a pattern of its application's name, or by its role."""
    rules = [rule for each in (allow or "").split(",") if (rule := each.strip())]
    for rule in rules:
        if rule.startswith("role:"):
            if holder.who == rule.removeprefix("role:"):
                return True
        elif holder.application is not None and fnmatchcase(holder.application, rule):
            return True
    return False
