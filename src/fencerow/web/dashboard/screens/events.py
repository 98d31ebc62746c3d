"""Events: how far each group is behind, what it has parked; deliver that again, forget it, read again from a place."""

from __future__ import annotations

import re
from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.db.run import ask
from fencerow.db.text import amount
from fencerow.events import shown
from fencerow.events.asides import Parked, discard, parked, redrive
from fencerow.events.bus import told
from fencerow.events.consumers import partitions
from fencerow.events.groups import GroupStart, group_named, groups, replay
from fencerow.events.lag import lags, retention_estimate
from fencerow.events.settings import EventSettings
from fencerow.web.dashboard.redacting import Redactor, text_without_secrets
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

GROUPS_SHOWN = 200
PARKED_SHOWN = 100
BEHIND_MAX = 250  # of each partition of each group: a page of all groups counts no further
BEHIND_OF_ONE_MAX = 1_000  # of each partition, on the page of one group
PLACE = re.compile(r"[0-9]{1,18}", re.ASCII)


async def events(look: Look) -> dict[str, Any]:
    """Five statements: the groups, their lags, the log, what is parked, the clock."""
    client = look.client
    after = look.query.get("after") or None
    page = await client.arun(ask(groups(after=after, limit=GROUPS_SHOWN + 1)))
    known = {each.name: each for each in page[:GROUPS_SHOWN]}
    found = await client.arun(ask(lags(look=BEHIND_MAX, after=after, limit=GROUPS_SHOWN)))
    kept = EventSettings.of(look.app.config).retention_events_max
    log = await client.arun(ask(retention_estimate(keep=kept)))
    aside = await client.arun(ask(parked(limit=PARKED_SHOWN)))
    return {
        "now_us": await look.now_us(),
        "groups": [(known.get(each.group), each) for each in found],
        "next": found[-1].group if len(page) > GROUPS_SHOWN and found else None,
        "is_first": after is None,
        "most": BEHIND_MAX,
        "log": log,
        **_parked(aside, look.redactor),
    }


async def group(look: Look) -> dict[str, Any]:
    """Five statements: the group, its lag, its readers, what it has parked, the clock."""
    client, name = look.client, look.query.get("name", "")
    found = await client.arun(ask(group_named(name)))
    lag = await client.arun(ask(lags(name, look=BEHIND_OF_ONE_MAX)))
    parts = await client.arun(ask(partitions(name)))
    aside = await client.arun(ask(parked(name, limit=PARKED_SHOWN)))
    return {
        "now_us": await look.now_us(),
        "group": found,
        "lag": lag[0] if lag else None,
        "partitions": parts,
        "most": BEHIND_OF_ONE_MAX,
        **_parked(aside, look.redactor),
    }


def _parked(found: list[Parked], redactor: Redactor) -> dict[str, Any]:
    """Parked events with their error and their data, without what is secret."""
    documents = [None if each.event is None else shown.event_document(each.event) for each in found]
    return {
        "parked": [
            (
                each,
                text_without_secrets(shown.message(each)),
                None if document is None else redactor.shown(document["topic"], document["data"]),
            )
            for each, document in zip(found, documents, strict=True)
        ],
        "all_parked": len(found) < PARKED_SHOWN,
    }


async def deliver_again(act: Act) -> PressAnswer:
    """Deliver one parked event again, or all of a group."""
    name, places = _meant(act)
    moved = await act.client.arun(ask(redrive(name, places)))
    told(act.client.engine)
    return _counted(len(moved), name, "delivered again")


async def forget(act: Act) -> PressAnswer:
    """Forget one parked event, or all of a group."""
    name, places = _meant(act)
    await act.client.arun(ask(group_named(name)))
    count = await act.client.arun(ask(discard(name, places)))
    return _counted(count, name, "no longer parked, and never handled")


async def read_again(act: Act) -> PressAnswer:
    """Let a group read again from a position on."""
    name, text = act.form.get("group", ""), act.form.get("from", "")
    start = GroupStart(text) if text == "beginning" else GroupStart.of(_place(text))
    done = await act.client.arun(ask(replay(name, start)))
    told(act.client.engine)
    return PressAnswer(
        f"Group {name} reads again after position {done.after}, as generation {done.generation}."
    )


def _meant(act: Act) -> tuple[str, list[int] | None]:
    """The group, and the place of one event; None for all that it has parked, if `all` says so.

    Raises:
        InvalidInput: neither was said.
    """
    name = act.form.get("group", "")
    return name, None if act.form.get("all") == "yes" else [_place(act.form.get("place", ""))]


def _place(text: str) -> int:
    if not PLACE.fullmatch(text):
        raise InvalidInput(
            f"{ascii(text)[:40]} is no position in the log", "a whole number is expected", "correct it"
        )
    return int(text)


def _counted(count: int, name: str, what: str) -> PressAnswer:
    if not count:
        return PressAnswer(f"No such event of group {name} is parked any more.", changed=False)
    return PressAnswer(f"{amount(count, 'event')} of group {name}: {what}.")


ACTIONS = (
    Action("/events/redrive", deliver_again),
    Action("/events/discard", forget),
    # All that the group did since then is done again: so this is not for everybody.
    Action("/events/replay", read_again, role=Role.ADMIN),
)
SCREENS = (
    Screen("events", "/events", "Events", events, section=Section.ORDER, place=120, key="e", actions=ACTIONS),
    Screen("event_group", "/events/group", "Group", group, place=121),
)
