"""Who has turns and who waits: exclusive keys, limits, mutexes; change a limit, free a mutex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencerow.core.errors import Busy, InvalidInput
from fencerow.limits.definition import Limit
from fencerow.limits.limits import LimitRecord
from fencerow.limits.rate import Rate
from fencerow.turns.telling import doing
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

KEYS_SHOWN = 300
LIMITS_SHOWN = 300
MUTEXES_SHOWN = 300
HOLDERS_SHOWN = 100
WAITERS_SHOWN = 100
COUNTED_MAX = 999  # of who waits: the verbs count up to 1,000
TOKEN_DIGITS_MAX = 18


async def turns(look: Look) -> dict[str, Any]:
    """Four statements: the keys, the mutexes that are held, the clock, the limits."""
    client = look.client
    keys = await client.exclusive.aknown(limit=KEYS_SHOWN)
    mutexes = await client.mutexes.aheld(limit=MUTEXES_SHOWN)
    now_us = await look.now_us()
    limits = await _limits(look)
    return {
        "now_us": now_us,
        "too_many": limits is None,
        "keys": keys.keys,
        "all_keys": keys.is_whole and len(keys.keys) < KEYS_SHOWN,
        "limits": [(each, *readable(each)) for each in (limits or [])[:LIMITS_SHOWN]],
        "hidden_limits": max(0, len(limits or []) - LIMITS_SHOWN),
        "mutexes": mutexes,
        "all_mutexes": len(mutexes) < MUTEXES_SHOWN,
        "most": COUNTED_MAX,
    }


async def _limits(look: Look) -> list[LimitRecord] | None:
    """The limits; None where there are more than a page may read. Asked last, for then nothing more may be read."""
    try:
        return await look.client.limits.aknown()
    except Busy:
        return None


def readable(record: LimitRecord) -> tuple[Limit | None, str, str]:
    """What it says, why nobody can read it if so, and its rate as a form has it."""
    try:
        found = record.limit
    except InvalidInput as error:
        return None, error.what, ""
    return found, "", plain_rate(found.rate)


async def key(look: Look) -> dict[str, Any]:
    """Three statements: who has the turns of the key, who waits, how many."""
    found = await look.client.exclusive.aget(look.query.get("key", ""), waiting=WAITERS_SHOWN)
    return {
        "now_us": found.now_us,
        "name": found.key,
        "at_once": found.at_once,
        "holders": [(each, doing(each, found.now_us)) for each in found.holders],
        "waiting": found.waiting,
        "waiting_count": found.waiting_count,
        "most": COUNTED_MAX,
    }


async def limit(look: Look) -> dict[str, Any]:
    """Five statements at most: the limit, what is remembered of a key of it, its holders, who waits, how many."""
    found = await look.client.limits.alook(look.query.get("name", ""), waiting=WAITERS_SHOWN)
    said, trouble, rate = readable(found.limit)
    room = None if said is None else found.room
    return {
        "now_us": found.now_us,
        "name": found.name,
        "record": found.limit,
        "limit": said,
        "trouble_of": trouble,
        "rate": rate,
        "room": room,
        "holders": [(each, doing(each, found.now_us)) for each in found.holders[:HOLDERS_SHOWN]],
        "holder_count": len(found.holders),
        "waiting": found.waiting,
        "waiting_count": found.waiting_count,
        "most": COUNTED_MAX,
    }


async def change(act: Act) -> PressAnswer:
    """Set how many run at once, and the rate of a limit. What else it says stays."""
    name, client = act.form.get("name", ""), act.client
    known = (await client.limits.aget(name)).limit
    wanted = replace(
        known,
        at_once=at_once_of(act.form.get("at_once", "")),
        rate=_rate_of(act.form.get("rate", ""), known.rate),
    )
    if await client.limits.adefine(wanted, reason=act.reason):
        return PressAnswer(f"The limit {name} is {wanted} from the next start on. What runs already goes on.")
    return PressAnswer(f"The limit {name} was so already: {wanted}.", changed=False)


def at_once_of(text: str) -> int | None:
    """How many at once; nothing means that it does not limit them.

    Raises:
        InvalidInput: it is no whole number.
    """
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > TOKEN_DIGITS_MAX:
        raise InvalidInput(
            f"at once is {ascii(text)[:40]}", "a whole number or nothing is expected", "correct it"
        )
    return int(text)


def _rate_of(text: str, known: Rate | None) -> Rate | None:
    """The rate that was meant; burst and strict stay as they were. What was sent back unchanged is not read anew."""
    if not text:
        return None
    if known is None:
        return Rate.parse(text)
    if text == plain_rate(known):
        return known
    return Rate.parse(text, burst=known.burst, strict=known.strict)


def plain_rate(rate: Rate | None) -> str:
    """A rate as it can be typed, without burst and strict."""
    return "" if rate is None else str(rate).partition(",")[0]


async def free(act: Act) -> PressAnswer:
    """Take a mutex from whoever holds it."""
    key, text = act.form.get("key", ""), act.form.get("token", "")
    if not text.isascii() or not text.isdigit() or len(text) > TOKEN_DIGITS_MAX:
        raise InvalidInput(
            f"the token is {ascii(text)[:40]}", "a whole number is expected", "open the page again"
        )
    if await act.client.mutexes.afree(key, int(text), reason=act.reason):
        return PressAnswer(f"The mutex {key} is free. Guarded writes of who held it are refused from now on.")
    return PressAnswer(f"Nobody holds the mutex {key} with that token any more.", changed=False)


ACTIONS = (
    Action("/turns/limit", change),
    # Who held it may still write what has no guard: so this is not for everybody.
    Action("/turns/free", free, role=Role.ADMIN),
)
SCREENS = (
    Screen(
        "turns",
        "/turns",
        "Keys and limits",
        turns,
        section=Section.ORDER,
        place=110,
        key="x",
        actions=ACTIONS,
    ),
    Screen("key", "/turns/key", "Exclusive key", key, place=111),
    Screen("limit", "/turns/limit", "Limit", limit, place=112),
)
