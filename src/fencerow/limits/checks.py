"""Limits that cannot work as they are stored, or that keep every job from starting."""

from __future__ import annotations

from collections.abc import Iterator

import fencerow.limits.limits as limits
from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.errors import InvalidInput
from fencerow.core.finding import Finding, fail, info, ok
from fencerow.limits.hours import open_until

SHOWN_MAX = 5


def examine_limits(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many there are; those that cannot be understood; those that are closed at this hour."""
    known = engine.run(limits.read_limits())
    yield ok("limits", f"{len(known)} are defined" if known else "none is defined")
    shown = 0
    for each in known:
        try:
            limit = each.limit
        except InvalidInput as error:
            yield fail("limit", f"{each.name}: {error.what}, so nothing starts under it", error.fix)
            continue
        is_open, _ = open_until(limit.openings, each.now_us) if limit.hours else (True, None)
        if not is_open and shown < SHOWN_MAX:
            shown += 1
            yield info("limit", f"{each.name} is closed at this hour: open {', '.join(limit.hours)}")
