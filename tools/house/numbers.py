"""The numbers that docs/guarantees.md promises are the defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import signature

from fencerow import Config
from fencerow.core.worker.blocked import BLOCKED_S
from fencerow.core.worker.roster import PATIENCE_S
from fencerow.db.postgres_session import IDLE_S
from fencerow.events.delivery import GRACE_S
from fencerow.guards.once import once
from fencerow.retention.maintenance import REPEATED_KEPT_S
from tools.house.files import ROOT, text_of

PAGE = "docs/guarantees.md"
DAY_S = 86400.0


def promised() -> dict[str, tuple[float, float]]:
    """Some words of the page: the number in the code, and the number that the words say."""
    config = Config()
    return {
        "lease + sweep, 45 s": (config.lease_s + config.sweep_s, 45),
        "suspects_max (4)": (config.suspects_max, 4),
        "have lived for 10 s": (PATIENCE_S, 10),
        "14 days more by default (key_lifetime_s)": (config.key_lifetime_s, 14 * DAY_S),
        "up to a day later": (REPEATED_KEPT_S, DAY_S),
        "retention_failed_s (90 days)": (config.retention_failed_s, 90 * DAY_S),
        "lease + renew_s, 35 s": (config.lease_s + config.renew_s, 35),
        "delays events there by 10 s": (IDLE_S, 10),
        "timeout_s + 5 s": (GRACE_S, 5),
        "retention_ticks_s, 7 days": (config.retention_ticks_s, 7 * DAY_S),
        "lifetime_s (a day)": (signature(once).parameters["lifetime_s"].default, DAY_S),
        "retention_sources_s (30 days)": (config.retention_sources_s, 30 * DAY_S),
        "After a second its worker names it": (BLOCKED_S, 1),
        "retention_unread_events_s (30 days)": (config.retention_unread_events_s, 30 * DAY_S),
    }


def faults() -> Iterator[str]:
    page = " ".join(re.sub(r"[*`]", "", text_of(ROOT / PAGE)).split())
    for words, (found, said) in promised().items():
        if words not in page:
            yield f"{PAGE}: {words!r} is gone: change it in tools/house/numbers.py, too"
        elif found != said:
            yield f"{PAGE}: {words!r}: the number is {found:g} now"
