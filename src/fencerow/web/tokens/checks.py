"""Tokens that are about to fail somebody, those that open everything for ever, and those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, ok, warn
from fencerow.core.model.defaults import DAY_S
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.web.tokens.operations import read_all
from fencerow.web.tokens.record import TokenRecord, TokenState
from fencerow.web.tokens.scope import Scope

SOON_S: Final = 14 * DAY_S
LATELY_S: Final = 7 * DAY_S
SHOWN_MAX: Final = 5
NAME: Final = "API token"


def examine_tokens(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many are live; what cannot be read; what is in use and expires soon; what opens everything for ever."""
    known = engine.run(read_all())
    live = [each for each in known if each.state is TokenState.LIVE]
    yield ok("API tokens", f"{amount(len(live), 'is', 'are')} live" if live else "none is live")
    yield from _first(_unreadable, [each for each in known if each.state is TokenState.UNREADABLE])
    yield from _first(_expiring, sorted(filter(_fails_soon, live), key=_left_s))
    yield from _first(_for_ever, [each for each in live if each.expires_at_us is None and _is_admin(each)])


def _first(told: Callable[[TokenRecord], Finding], found: Sequence[TokenRecord]) -> Iterator[Finding]:
    """What is told of the first few, and how many others there are of which the same is so."""
    findings = [told(each) for each in found[: SHOWN_MAX + 1]]
    yield from findings[:SHOWN_MAX]
    if len(found) > SHOWN_MAX:
        rest = f"{len(found) - SHOWN_MAX} more as these"
        yield Finding(NAME, findings[-1].level, rest, "`fencerow tokens` lists them")


def _unreadable(token: TokenRecord) -> Finding:
    return fail(
        NAME,
        f"{_named(token)}: {', '.join(token.damaged)} cannot be read, as its row was changed by hand; "
        "nobody passes with it",
        f"`fencerow tokens revoke {token.id}`, and make another",
    )


def _expiring(token: TokenRecord) -> Finding:
    days = _left_s(token) / DAY_S
    left = amount(int(days), "day") if days >= 1 else "less than a day"
    return warn(
        NAME,
        f"{_named(token)} is used, and expires in {left}",
        f"`fencerow tokens create {token.name} …` makes the next one; give it out, then revoke this one",
    )


def _for_ever(token: TokenRecord) -> Finding:
    return warn(
        NAME,
        f"{_named(token)} may do everything, and never expires",
        f"make one that expires or may do less, then `fencerow tokens revoke {token.id}`",
    )


def _named(token: TokenRecord) -> str:
    return f"{token.name} ({token.id})"


def _is_admin(token: TokenRecord) -> bool:
    return Scope.ADMIN in token.scopes


def _fails_soon(token: TokenRecord) -> bool:
    used_us = token.last_used_at_us
    is_used = used_us is not None and token.now_us - used_us <= LATELY_S * 1e6
    return is_used and token.expires_at_us is not None and _left_s(token) <= SOON_S


def _left_s(token: TokenRecord) -> float:
    assert token.expires_at_us is not None
    return (token.expires_at_us - token.now_us) / 1e6
