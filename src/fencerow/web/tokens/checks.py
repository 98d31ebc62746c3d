"""Tokens that are about to fail somebody, and those that open everything for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.finding import Finding, ok, warn
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.text import amount
from fencerow.web.tokens.operations import examined
from fencerow.web.tokens.record import TokenRecord

SOON_S: Final = 14 * DAY_S
LATELY_S: Final = 7 * DAY_S
SHOWN_MAX: Final = 5


def examine_tokens(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many are live; those in use that expire soon; those that may do everything and never expire."""
    found = engine.run(examined(soon_s=SOON_S, lately_s=LATELY_S, limit=SHOWN_MAX))
    yield ok("API tokens", f"{amount(found.live, 'is', 'are')} live" if found.live else "none is live")
    for each in found.expiring:
        yield warn(
            "API token",
            f"{each.name} ({each.id}) is used, and expires in {_days_left(each)}",
            f"`fencerow tokens create {each.name} …` makes the next one; give it out, then revoke this one",
        )
    for each in found.for_ever:
        yield warn(
            "API token",
            f"{each.name} ({each.id}) may do everything, and never expires",
            f"make one that expires or may do less, then `fencerow tokens revoke {each.id}`",
        )


def _days_left(token: TokenRecord) -> str:
    assert token.expires_at_us is not None
    days = (token.expires_at_us - token.now_us) / 1e6 / DAY_S
    return amount(int(days), "day") if days >= 1 else "less than a day"
