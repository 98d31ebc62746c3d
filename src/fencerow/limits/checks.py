"""Limits that cannot work as they are stored, or that keep every job from starting."""

from __future__ import annotations

from collections.abc import Iterator

import fencerow.limits.limits as limits
from fencerow.core.config import CoreConfig
from fencerow.core.errors import InvalidInput
from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, execute, first_column, operation
from fencerow.db.text import amount
from fencerow.limits.hours import open_until

SHOWN_MAX = 5


@operation(alone=True, repeatable=True, writes="")
def undefined_limits() -> Steps[list[str]]:
    """The first limits that live jobs name and nobody has defined."""
    return first_column((yield from execute("undefined_limits", limit=SHOWN_MAX)))


def examine_limits(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many there are; those that cannot be understood; those that are closed at this hour."""
    known = engine.run(limits.read_limits())
    yield ok("limits", f"{amount(len(known), 'is', 'are')} defined" if known else "none is defined")
    shown = 0
    for each in known:
        if each.damaged:
            yield fail(
                "limit",
                f"{each.name}: {', '.join(each.damaged)} cannot be read, as its row was changed by hand",
                f"`fencerow limits set {each.name} ...` writes it again; if that is refused, correct the row by hand",
            )
        try:
            limit = each.limit
        except InvalidInput as error:
            yield fail("limit", f"{each.name}: {error.what}, so nothing starts under it", error.fix)
            continue
        is_open, _ = open_until(limit.openings, each.now_us) if limit.hours else (True, None)
        if not is_open and shown < SHOWN_MAX:
            shown += 1
            yield info("limit", f"{each.name} is closed at this hour: open {', '.join(limit.hours)}")
    for name in engine.run(undefined_limits()):
        yield warn(
            "unknown limit",
            f"live jobs name the limit {name}, which nobody defines any more, so nothing binds them",
            f"`fencerow limits set {name.partition('/')[0]} --at-once 4{' --per-key' * ('/' in name)}` defines it",
        )
