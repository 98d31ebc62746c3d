"""Handovers: ends of jobs that their receiver has not confirmed; an administrator confirms in the receiver's place."""

from __future__ import annotations

import re
from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.db.run import ask
from fencerow.handovers.looking import COUNTED_MAX, counted, listed
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

SHOWN = 100
PLACE = re.compile(r"[0-9]{1,18}", re.ASCII)
FILTERS = ("receiver", "key")


async def handovers(look: Look) -> dict[str, Any]:
    """Three statements: those that are not confirmed, how many there are, the clock."""
    chosen = {name: text for name in FILTERS if (text := look.query.get(name, "").strip())}
    after = place_of(look.query.get("after"))
    page = listed(receiver=chosen.get("receiver"), key=chosen.get("key"), after=after, limit=SHOWN + 1)
    found = await look.client.arun(ask(page))
    return {
        "now_us": await look.now_us(),
        "counts": await look.client.arun(ask(counted())),
        "handovers": found[:SHOWN],
        "most": COUNTED_MAX,
        "next": found[SHOWN - 1].handover.place if len(found) > SHOWN else None,
        "is_first": after < 0,
        "chosen": chosen,
        "filters": [
            (name, value, {other: chosen[other] for other in chosen if other != name})
            for name, value in chosen.items()
        ],
    }


def place_of(text: str | None) -> int:
    """The place behind which a page begins.

    Raises:
        InvalidInput: it is none.
    """
    if not text:
        return -1
    if not PLACE.fullmatch(text):
        raise InvalidInput(
            f"after is {ascii(text)[:40]}", "the place of a handover is expected", "begin anew"
        )
    return int(text)


async def confirm(act: Act) -> PressAnswer:
    """Confirm it in the place of its receiver, whoever has taken it."""
    done = await act.client.handovers(act.form.get("receiver", "")).aconfirm(act.form.get("job", ""))
    if done.replay:
        return PressAnswer("It was confirmed already.", changed=False)
    return PressAnswer("It is confirmed. It is not handed over again, and the next of its key may be taken.")


# Nobody looks whether the receiver has it: what it has not, it never gets.
ACTIONS = (Action("/handovers/confirm", confirm, role=Role.ADMIN),)
SCREENS = (
    Screen(
        "handovers", "/handovers", "Handovers", handovers,
        section=Section.ORDER, place=150, key="v", actions=ACTIONS,
    ),
)  # fmt: skip
