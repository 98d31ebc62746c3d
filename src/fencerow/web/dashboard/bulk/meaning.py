"""What a bulk action is asked for: its verb, and the jobs that are meant, by choice or by the whole search.

It is all in an address, so a preview can be opened again, and shown to somebody else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.operators.finding import JobFilter
from fencerow.web.dashboard.bulk.verbs import BulkVerb, verb_of
from fencerow.web.dashboard.searching import Search, searched

CHOSEN_MAX = 50
ID_BYTES = 16
VALUE_MAX = 200
LOWEST_ID, HIGHEST_ID = str(UUID(int=0)), str(UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class Meant:
    """`ids`: those that were chosen one by one; empty: all that `search` finds."""

    verb: BulkVerb
    value: str
    text: str
    search: Search
    ids: tuple[str, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """The states of the jobs that are moved: those that were asked for and fit, else what the verb means."""
        if self.ids:
            return tuple(sorted(self.verb.fits))
        return tuple(sorted(set(self.search.chosen.states or self.verb.default) & self.verb.fits))

    @property
    def lacks_value(self) -> bool:
        """Whether it needs a value, and none was said."""
        return bool(self.verb.value) and not self.value

    def chosen(self, at_us: int, below: str | None) -> JobFilter:
        """The filter of the jobs that are moved, below this id; ages are counted from the preview."""
        return replace(self.search.page_after(below, at_us), states=self.states)

    def lowest_id(self, at_us: int) -> str:
        """The id below which no job is meant."""
        return self.search.lowest_id(at_us)

    def words(self) -> Sequence[str]:
        """Which jobs are meant, in words."""
        if self.ids:
            return [f"{len(self.ids)} that were chosen" if len(self.ids) > 1 else "the one that was chosen"]
        return [_word(each.name, each.value) for each in self.search.tokens]

    def params(self) -> dict[str, str]:
        """What stands in the address for it."""
        given = {"verb": self.verb.name, "value": self.value}
        given |= {"ids": packed(self.ids)} if self.ids else {"q": self.text}
        return {name: value for name, value in given.items() if value}


def meant_by(given: Mapping[str, str]) -> Meant:
    """What an address, or a form, asks for.

    Raises:
        InvalidInput: there is no such verb, the choice cannot be read, or it would mean every job there is.
    """
    verb, value, text = verb_of(given.get("verb", "")), given.get("value", ""), given.get("q", "")
    ids = unpacked(given["ids"]) if given.get("ids") else ()
    search = searched("" if ids else text)
    if search.odd:
        raise InvalidInput(
            f"{search.odd[0].text} is not understood", str(search.odd[0].why), "correct the search first"
        )
    if not ids and (not search.tokens or search.meant is not None):
        raise InvalidInput(
            "no filter was given" if search.meant is None else "the search has the beginning of an id",
            "a bulk action never means every job there is, and ids are chosen one by one",
            "search first, or choose jobs on the page",
        )
    if len(value) > VALUE_MAX:
        raise InvalidInput(f"the value has {len(value)} characters", f"{VALUE_MAX} are taken", "shorten it")
    return Meant(verb, value if verb.value else "", "" if ids else text, search, ids)


def packed(ids: Sequence[str]) -> str:
    """Ids as an address carries them: 22 characters each."""
    return base64.urlsafe_b64encode(b"".join(UUID(each).bytes for each in ids)).decode().rstrip("=")


def unpacked(text: str) -> tuple[str, ...]:
    """The ids of an address, each once.

    Raises:
        InvalidInput: it is cut, or they are too many.
    """
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raw = b""
    if not raw or len(raw) % ID_BYTES or len(raw) > CHOSEN_MAX * ID_BYTES:
        raise InvalidInput(
            "the choice cannot be read", f"it has up to {CHOSEN_MAX} ids", "choose the jobs again"
        )
    found = [str(UUID(bytes=raw[at : at + ID_BYTES])) for at in range(0, len(raw), ID_BYTES)]
    return tuple(dict.fromkeys(found))


def is_touched(submitted_at_us: int, revived_at_us: int | None, ended_at_us: int | None, at_us: int) -> bool:
    """Whether the job came, ended or was revived after the preview: then it is not what was shown, and is left."""
    return max(submitted_at_us, revived_at_us or 0, ended_at_us or 0) > at_us


def is_touched_record(job: JobRecord, at_us: int) -> bool:
    """`is_touched` of a job of a list."""
    return is_touched(job.submitted_at_us, job.revived_at_us, job.ended_at_us, at_us)


def _word(name: str, value: str) -> str:
    before = {
        "after": "submitted within",
        "before": "submitted more than",
        "job": "named",
        "state": "in the state",
    }
    text = f"{before.get(name, f'with {name}')} {value}"
    return f"{text} ago" if name == "before" else text
