"""Audit: who changed what by hand, by which way, and what was said with it."""

from __future__ import annotations

from typing import Any

from fencerow.core.errors import InvalidInput
from fencerow.core.wing import wings
from fencerow.web.dashboard.screen import Look, Screen, Section

PAGE = 50
NAMES_SHOWN = 10
PAGES_OF = {"job": "/jobs", "worker": "/workers"}  # of what there is a page, under the same id
FILTERS = ("kind", "person", "target")


async def audit(look: Look) -> dict[str, Any]:
    """Two statements: a page of entries, the clock."""
    chosen = {name: text for name in FILTERS if (text := look.query.get(name, "").strip())}
    before = _before(look.query.get("before"))
    found = await look.client.audit.aentries(
        kind=chosen.get("kind"),
        person=chosen.get("person"),
        target=chosen.get("target"),
        before=before,
        limit=PAGE + 1,
    )
    shown = found[:PAGE]
    return {
        "now_us": await look.now_us(),
        "entries": shown,
        "older": {**chosen, "before": shown[-1].id} if len(found) > PAGE else None,
        "before": before,
        "chosen": chosen,
        "filters": [
            (name, value, {other: chosen[other] for other in chosen if other != name})
            for name, value in chosen.items()
        ],
        "kinds": sorted({each.kind for wing in wings() for each in wing.changes}),
        "pages_of": PAGES_OF,
        "names_shown": NAMES_SHOWN,
    }


def _before(text: str | None) -> int | None:
    """The id of the entry above the page.

    Raises:
        InvalidInput: it is no id.
    """
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 18:
        raise InvalidInput(
            f"the page before {ascii(text)[:40]} is asked for", "the id of an entry is expected", "go back"
        )
    return int(text)


SCREENS = (Screen("audit", "/audit", "Audit", audit, section=Section.SYSTEM, place=230, key="a"),)
