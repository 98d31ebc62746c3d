"""The place in a long list behind which a page begins: its address says an instant and the id of what stood there."""

from __future__ import annotations

import re

from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id

NOWHERE = "00000000-0000-0000-0000-000000000000"  # before all ids
PLACE = re.compile(r"(\d{1,18})-([0-9a-f-]{36})", re.ASCII)

Place = tuple[int, str]


def place_told(at_us: int, of_id: str) -> str:
    """A place, for an address."""
    return f"{at_us}-{of_id}"


def place_of(text: str | None, what: str) -> Place:
    """The place that an address says; before everything if it says none. `what` stands there, such as "a question".

    Raises:
        InvalidInput: it is none.
    """
    if not text:
        return 0, NOWHERE
    found = PLACE.fullmatch(text)
    if found is None:
        raise InvalidInput(f"after is {ascii(text)[:60]}", f"the place of {what} is expected", "begin anew")
    return int(found[1]), parse_id(found[2])
