"""A bulk action before it is done: which jobs it means, how many they are, what becomes of them; and its press."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fencerow.core.errors import Busy, InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.run import ask
from fencerow.operators.finding import listing
from fencerow.web.dashboard.bulk import doing
from fencerow.web.dashboard.bulk.counting import Counted, chosen_jobs, counting
from fencerow.web.dashboard.bulk.flights import once
from fencerow.web.dashboard.bulk.meaning import Meant, is_touched_record, meant_by, packed
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen
from fencerow.web.dashboard.searching import page_of
from fencerow.web.errors import PreviewOver

EXAMPLES = 20
BRIEF_S, BRIEF_LOOKS = 1.0, 20
EXACT_S, EXACT_LOOKS = 20.0, 300
PREVIEW_S = 3_600  # how long what was shown may be confirmed
MARKS = {
    "chosen": "id:",
    "page": "page:",
}  # before the ids of the form: those that were ticked, and all of the page


async def bulk(look: Look) -> dict[str, Any]:
    """The clock, the counts, the examples: three statements for a choice; a search is counted in looks, for a time."""
    meant, below = meant_by(look.query), page_of(look.query.get("below"))
    now_us = await look.now_us()
    at_us = min(_instant(look.query.get("at")) or now_us, now_us)
    exact = "exact" in look.query
    counted = await _counted(look, meant, at_us, below, exact=exact)
    return {
        "now_us": now_us, "at_us": at_us, "meant": meant, "below": below, "exact": exact,
        "sofar": look.query.get("sofar", ""), "expected": look.query.get("expected", ""),
        "counted": counted,
        "jobs": counted.among(meant.states),
        "fates": [
            (state, counted.by_state[state], _fate(meant, state))
            for state in State if counted.by_state.get(state)
        ],
        "examples": await _examples(look, meant, at_us, below),
        "address": urlencode(meant.params() | ({"below": below, "at": at_us} if below else {})),
        "back": f"?{urlencode({'q': meant.text})}" if meant.text else "",
        "too_old": now_us - at_us > PREVIEW_S * 1_000_000,
    }  # fmt: skip


async def _counted(look: Look, meant: Meant, at_us: int, below: str | None, *, exact: bool) -> Counted:
    if meant.ids:
        by_state: dict[State, int] = {}
        for each in await look.client.arun(ask(chosen_jobs(meant.ids))):
            by_state[each.state] = by_state.get(each.state, 0) + 1
        return Counted(by_state)
    limit_s, looks = (EXACT_S, EXACT_LOOKS) if exact else (BRIEF_S, BRIEF_LOOKS)
    return await look.client.arun(counting(meant, at_us, below, limit_s=limit_s, looks_max=looks))


async def _examples(look: Look, meant: Meant, at_us: int, below: str | None) -> list[Any] | None:
    """Up to 20 of those that are moved; None where the search for them took too long."""
    if meant.ids:
        found = await look.client.arun(ask(chosen_jobs(meant.ids)))
        return [each for each in found if each.state in meant.states][:EXAMPLES]
    if not meant.states:
        return []
    try:
        records = await look.client.arun(listing(meant.chosen(at_us, below), EXAMPLES))
    except Busy:
        return None
    return [each for each in records if not is_touched_record(each, at_us)]


def _fate(meant: Meant, state: State) -> tuple[bool, str]:
    """Whether jobs in this state are moved, and what becomes of them, or why they stay."""
    if state in meant.states:
        return True, meant.verb.fate(state)
    if state in meant.verb.fits:
        default = " and ".join(sorted(meant.verb.default))
        return False, f"stay: without a state in the search, {default} ones are meant"
    return False, f"stay: {meant.verb.unfit}"


def _instant(text: str | None) -> int | None:
    """The instant of a preview, in microseconds, if one is given.

    Raises:
        InvalidInput: it is none.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InvalidInput(f"at is {ascii(text)[:40]}", "microseconds since 1970 are expected", "look again")
    return int(text)


async def choose(act: Act) -> PressAnswer:
    """From the page of jobs to the preview: those that were chosen there, or all that the search finds."""
    form = act.form
    mark = MARKS.get(form.get("whom", ""), "id:")
    ids = [parse_id(name.removeprefix(mark)) for name in form if name.startswith(mark)]
    wanted = {"verb": form.get("verb", ""), "value": form.get("value", "")}
    if form.get("whom") == "all":
        meant = meant_by({**wanted, "q": form.get("q", "")})
    elif ids:
        meant = meant_by({**wanted, "ids": packed(ids)})
    else:
        raise InvalidInput(
            "no job was chosen", "an action is for chosen jobs, or for the search", "choose some"
        )
    said = "This is what it would do. Nothing is changed yet."
    return PressAnswer(said, changed=False, to=f"/jobs/bulk?{urlencode(meant.params())}")


async def confirm(act: Act) -> PressAnswer:
    """Do it, for as long as a press may take. Pressed twice it is done once.

    Raises:
        PreviewOver: what was shown is too old, or was not shown yet.
        InvalidInput: nothing that can be done is asked for.
    """
    form = act.form
    meant, below, at_us = meant_by(form), page_of(form.get("below")), _instant(form.get("at"))
    move = doing.check_move(meant, act.visitor.name or None, form.get("reason", ""), at_us or 0)
    now_us = await act.client.arun(ask(store.clock()))
    if at_us is None or not 0 <= now_us - at_us <= PREVIEW_S * 1_000_000:
        raise PreviewOver(
            "the preview is too old to be confirmed", f"it holds for {PREVIEW_S // 60} minutes", "look again"
        )
    expected = form.get("expected", "")

    async def make() -> PressAnswer:
        tally = doing.unpacked(form.get("sofar", ""))
        done = await doing.press(act.client, meant, move, at_us=at_us, below=below, tally=tally)
        return _told(meant, done, at_us, int(expected) if expected.isdecimal() else None)

    pressed = (act.visitor.name, *sorted(meant.params().items()), at_us, below)
    return await once(act.app, pressed, make)


def _told(meant: Meant, done: doing.PressProgress, at_us: int, expected: int | None) -> PressAnswer:
    words = done.tally.words()
    if done.below is None:
        back = f"/jobs?{urlencode({'q': meant.text})}" if meant.text else "/jobs"
        changed = bool(done.tally.done)
        return PressAnswer(
            f"{meant.verb.title}: {words}.{doing.compared(done.tally, expected)}", changed, back
        )
    rest = meant.params() | {"at": str(at_us), "below": done.below, "sofar": doing.packed(done.tally)}
    if expected is not None:
        rest["expected"] = str(expected)
    return PressAnswer(
        f"So far: {words}. More jobs are left: go on, or leave them.", to=f"/jobs/bulk?{urlencode(rest)}"
    )


ACTIONS = (Action("/jobs/choose", choose), Action("/jobs/bulk", confirm))
SCREENS = (
    Screen(
        "bulk",
        "/jobs/bulk",
        "Bulk action",
        bulk,
        place=20,
        actions=ACTIONS,
        live=False,
        statements_max=EXACT_LOOKS + 10,
        look_s=EXACT_S + 5,
    ),
)
