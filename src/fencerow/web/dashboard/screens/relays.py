"""Relays: where each leads and how far it is behind, its parts and who reads them, and what could not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.core.finding import Level
from fencerow.db.run import ask
from fencerow.db.text import amount
from fencerow.events.lag import lags
from fencerow.relay.checks import findings_of
from fencerow.relay.outward import GROUP
from fencerow.relay.relays import Part, Relay, listed
from fencerow.relay.verbs import Relays
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section
from fencerow.web.dashboard.screens.events import BEHIND_MAX
from fencerow.web.dashboard.words import ago

RELAYS_SHOWN = 200
PARTS_SHOWN = 500
UNREAD_SHOWN = 50
NUMBER_DIGITS = 18
POSITIONS = {"": "not begun", "<": "the beginning", ">": "the end"}


async def relays(look: Look) -> dict[str, Any]:
    """Three statements: all relays, how far those that send are behind, what could not be read lately."""
    found = (await _known(look))[:RELAYS_SHOWN]
    unread = await Relays(look.client).aunread(limit=UNREAD_SHOWN + 1) if found else []
    return {
        "now_us": found[0].now_us if found else await look.now_us(),
        "relays": found,
        "now_of": {each.name: now_of(each) for each in found},
        "problems": problems_of(found),
        "unread": unread[:UNREAD_SHOWN],
        "more_unread": len(unread) > UNREAD_SHOWN,
        "position_of": position_of,
    }


async def relay(look: Look) -> dict[str, Any]:
    """Five statements at most: the relay, how far its group is behind, its parts, what could not be read."""
    verbs, name = Relays(look.client), look.query.get("name", "")
    parts = (await verbs.aparts(name))[:PARTS_SHOWN]
    (found,) = await _known(look, name)
    unread = await verbs.aunread(name, limit=UNREAD_SHOWN + 1)
    return {
        "now_us": found.now_us,
        "relay": found,
        "now": now_of(found),
        "group": GROUP + found.name,
        "problems": problems_of([found]),
        "partitions": parts,
        "unread": unread[:UNREAD_SHOWN],
        "more_unread": len(unread) > UNREAD_SHOWN,
        "position_of": position_of,
    }


async def _known(look: Look, name: str | None = None) -> list[Relay]:
    """All relays, or one. How far those that send are behind is counted up to a bound, as on *Events*."""
    found = await look.client.arun(ask(listed(name)))
    if all(each.direction == "in" for each in found):
        return found
    behind = await look.client.arun(ask(lags(look=BEHIND_MAX, after=GROUP, limit=RELAYS_SHOWN)))
    events = {each.group: each.events for each in behind}
    return [
        each if each.direction == "in" else replace(each, lag=events.get(GROUP + each.name)) for each in found
    ]


def problems_of(found: Any) -> list[Any]:
    """What the doctor says of these relays, the worst first."""
    told = [each for one in found for each in findings_of(one) if each.level in (Level.FAIL, Level.WARN)]
    return sorted(told, key=lambda each: each.level is not Level.FAIL)


def now_of(found: Relay) -> str:
    """Whether it goes on."""
    if found.paused_at_us is not None:
        return f"rests since {ago(found.paused_at_us, found.now_us)}"
    if found.stopped is not None:
        return "stopped"
    if found.trouble is not None:
        return "waits for its broker"
    return "runs" if found.readers else "nobody runs it"


def position_of(part: Part) -> str:
    """Where a part stands, in the broker's words."""
    return POSITIONS.get(part.position, part.position.partition("#")[0])


async def pause(act: Act) -> PressAnswer:
    """Let it rest."""
    name = act.form.get("relay", "")
    if await Relays(act.client).apause(name, reason=act.reason):
        return PressAnswer(
            f"{name} rests within two seconds. Nothing is lost as long as its source keeps it."
        )
    return PressAnswer(f"{name} rests already.", changed=False)


async def resume(act: Act) -> PressAnswer:
    """Let it go on."""
    name = act.form.get("relay", "")
    if await Relays(act.client).aresume(name):
        return PressAnswer(f"{name} goes on.")
    return PressAnswer(f"{name} did not rest.", changed=False)


async def move(act: Act) -> PressAnswer:
    """Let one part go on at another position."""
    name, position = act.form.get("relay", ""), act.form.get("position", "")
    await Relays(act.client).amove(
        name, _whole(act.form.get("part", ""), "the part"), position, again=act.form.get("again") == "yes"
    )
    return PressAnswer(f"{name} goes on at {position}.")


async def discard(act: Act) -> PressAnswer:
    """Forget one message that could not be read, or all of a relay."""
    name = act.form.get("relay", "")
    ids = None if act.form.get("all") == "yes" else [_whole(act.form.get("id", ""), "the message")]
    count = await Relays(act.client).adiscard(name, ids)
    if not count:
        return PressAnswer("It was forgotten already.", changed=False)
    return PressAnswer(f"{amount(count, 'message')} of {name}: forgotten.")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS):
        raise InvalidInput(f"{what} is {ascii(text)[:40]}", "a whole number is expected", "correct it")
    return int(text)


ACTIONS = (
    Action("/relays/pause", pause),
    Action("/relays/resume", resume),
    Action("/relays/discard", discard),
    # What lies between is skipped, or comes once more: so this is not for everybody.
    Action("/relays/move", move, role=Role.ADMIN),
)
SCREENS = (
    Screen("relays", "/relays", "Relays", relays, section=Section.ORDER, place=130, key="r", actions=ACTIONS),
    Screen("relay", "/relays/one", "Relay", relay, place=131),
)
