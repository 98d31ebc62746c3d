"""Jobs: those that a typed search finds, the newest first, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencerow.core.errors import Busy, InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import FINAL, State
from fencerow.db.run import ask
from fencerow.operators.finding import listing
from fencerow.operators.prefixes import jobs_between
from fencerow.web.dashboard.bulk.verbs import VERBS
from fencerow.web.dashboard.cost import ROWS_OF_QUEUES_MAX
from fencerow.web.dashboard.counting import COUNTED_MAX, RECENT_MAX, LiveCount, live_counts, recent_counts
from fencerow.web.dashboard.screen import Look, Screen, Section
from fencerow.web.dashboard.searching import Search, command, page_of, searched

PAGE = 50
IDS_MAX = 20
AGES = (("the last 7 days", "7d", 604_800), ("the last day", "1d", 86_400), ("the last hour", "1h", 3_600))
GIVEN_UP = (
    "This search was given up after 2 seconds: hardly any job has what it asks for, so it looks at all of them. Over "
    "less time it looks at fewer. An id, tag:, meta:, and scope: with key: are found at once, however many there are."
)


async def jobs(look: Look) -> dict[str, Any]:
    """At most five statements: the page, the counts beside it, the clock."""
    text = look.query.get("q", "")
    search, page = searched(text), page_of(look.query.get("page"))
    live = await look.client.arun(ask(live_counts()))
    now_us = live[0].now_us if live else await look.now_us()
    trouble: str | None = None
    found: list[JobRecord] = []
    narrower: list[tuple[str, str]] = []
    try:
        found = await _found(look, search, page, now_us)
    except InvalidInput as error:
        trouble = f"{error.what}: {error.why}"
    except Busy:
        trouble, narrower = GIVEN_UP, narrower_searches(search)
    shown = found[:PAGE]
    return {
        "now_us": now_us,
        "text": text,
        "search": search,
        "jobs": shown,
        "older": shown[-1].id if len(found) > PAGE else None,
        "page": page,
        "trouble": trouble,
        "narrower": narrower,
        "facets": await _facets(look, search, live),
        "most": COUNTED_MAX,
        "command": command(search),
        "verbs": list(VERBS.values()),
    }


async def _found(look: Look, search: Search, page: str | None, now_us: int) -> list[JobRecord]:
    """The page, and one job more if there is one. What is not understood finds nothing, rather than everything."""
    if search.odd:
        return []
    if search.meant is not None:
        meant = search.meant
        ids = await look.client.arun(ask(jobs_between(meant.first, meant.last, limit=IDS_MAX)))
        return await _of_ids(look, ids)
    return await look.client.arun(listing(search.page_after(page, now_us), PAGE + 1))


async def _of_ids(look: Look, ids: Sequence[str]) -> list[JobRecord]:
    """The jobs whose ids begin alike. They were made within an instant, so they lie together."""
    if not ids:
        return []
    records = await look.client.alist_jobs(before_id=_above(max(ids)), limit=IDS_MAX)
    return [each for each in records if each.id in ids]


def _above(job_id: str) -> str:
    """The id after this one."""
    number = min(int(job_id.replace("-", ""), 16) + 1, 2**128 - 1)
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


async def _facets(look: Look, search: Search, live: Sequence[LiveCount]) -> list[dict[str, Any]]:
    """States to choose from, with counts where nothing else narrows the search."""
    queue = search.chosen.queue
    counts: dict[State, int] = {}
    if search.is_plain:
        for each in live:
            if queue is None or each.queue == queue:
                counts[each.state] = counts.get(each.state, 0) + each.jobs
        if queue is None:
            recent = await look.client.arun(ask(recent_counts()))
            counts |= recent
    others = " ".join(each.text for each in search.tokens if each.name != "state")
    return [
        {
            "state": state.value,
            "q": f"{others} state:{state.value}".strip(),
            "jobs": counts.get(state, 0) if search.is_plain and not (queue and state in FINAL) else None,
            "chosen": state in search.chosen.states,
            "recent": state in FINAL,
            "most": RECENT_MAX if state in FINAL else COUNTED_MAX,
        }
        for state in State
    ]


def narrower_searches(search: Search) -> list[tuple[str, str]]:
    """The same search over less time, the longest first: how it is called, and the search."""
    others = " ".join(each.text for each in search.tokens if each.name != "after")
    return [
        (title, f"{others} after:{age}".strip())
        for title, age, seconds in AGES
        if (search.after_s is None or seconds < search.after_s)
        and (search.before_s is None or seconds > search.before_s)
    ]


SCREENS = (
    Screen(
        "jobs", "/jobs", "Jobs", jobs, section=Section.WORK, place=20, key="j", rows_max=ROWS_OF_QUEUES_MAX
    ),
)
