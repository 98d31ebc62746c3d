"""The live parts of pages, each made once for all who see the same: its place, its address and their role.

What differs between two such visitors is the token of their forms alone, so that is put in afterwards.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from fencerow.web.dashboard.looks import Seen
from fencerow.web.dashboard.pages import Pages, Visit
from fencerow.web.dashboard.roles import Visitor
from fencerow.web.dashboard.screen import Screen

UNTOLD = "a visitor"  # no live part may name who looks


class LiveParts:
    """Makes events of live parts. A part is kept with the look of which it was made, and goes with it."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._hole = secrets.token_hex(32)  # where a form's token goes; nobody can write this into a page

    def event(self, screen: Screen, seen: Seen, visit: Visit) -> bytes:
        """The part that this visitor sees, as one event of a stream."""
        key = (visit.base, visit.at, visit.visitor.role)
        pieces = seen.parts.get(key)
        if pieces is None:
            made = self._pages.live(
                screen.name, self._anybody(visit), {**seen.found, "screen": screen, "seen": seen}
            )
            pieces = seen.parts[key] = event("view", made).split(self._hole.encode())
        return visit.form.encode().join(pieces)

    def _anybody(self, visit: Visit) -> Visit:
        return replace(visit, visitor=Visitor(UNTOLD, visit.visitor.role), form=self._hole)


def event(name: str, content: str) -> bytes:
    """An event of a stream, as it goes over the wire."""
    lines = "".join(f"data: {line}\n" for line in content.splitlines())
    return f"event: {name}\n{lines}\n".encode()
