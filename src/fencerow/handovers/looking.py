"""Looks at handovers for people: what is under way, where it stands, what nobody confirms. Nothing is changed."""

from __future__ import annotations

import msgspec

from fencerow.command.documents import instants
from fencerow.command.times import span
from fencerow.core.model.job import At
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import whole_or_none
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.handovers.handovers import COLUMNS, Handover, handover_of

COUNTED_MAX = 10_000


class PlacedHandover(msgspec.Struct, frozen=True):
    """A handover with its place: `behind` is the first job of its line, if that is another one; `now_us`: the time."""

    handover: Handover
    behind: str | None
    now_us: int

    now = At("now_us")

    @property
    def standing(self) -> str:
        """Where it stands, for people."""
        each, now_us = self.handover, self.now_us
        if each.confirmed_at_us is not None:
            return "confirmed"
        if each.state is None:
            return "its job has not ended"
        if each.holder is not None and each.free_at_us is not None and each.free_at_us > now_us:
            return f"taken by {each.taken_by or 'somebody'}, for {span((each.free_at_us - now_us) / 1e6)} yet"
        if each.free_at_us is not None and each.free_at_us > now_us:
            return f"released, to be taken in {span((each.free_at_us - now_us) / 1e6)}"
        if self.behind is not None and each.held_until_us is not None and each.held_until_us > now_us:
            return f"waits behind job {self.behind}, for {span((each.held_until_us - now_us) / 1e6)} at most"
        return "to be taken"


class UnconfirmedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a receiver in which an end has waited for long: of the one that has waited longest the job, since when,
    and how often it was taken; and how many such ends the line has."""

    receiver: str
    key: str
    job_id: str
    ended_at_us: int
    token: int
    ends: int
    now_us: int

    ended_at = At("ended_at_us")
    now = At("now_us")


class HandoverCounts(msgspec.Struct, frozen=True):
    """How many are not confirmed, and of how many of these the job has ended; both end at 10,000."""

    open: int
    ended: int


@operation(alone=True, repeatable=True, writes="")
def listed(
    *, receiver: str | None = None, key: str | None = None, after: int = -1, limit: int
) -> Steps[list[PlacedHandover]]:
    """What is not confirmed, in the order of the submits. `after`: the place of the last one of the page before."""
    rows = yield from execute("list_handovers", receiver=receiver, key=key, after=after, limit=limit)
    return [
        PlacedHandover(handover_of(row), text_or_none(row[COLUMNS]), as_int(row[COLUMNS + 1])) for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def placed_handover(job_id: str) -> Steps[PlacedHandover | None]:
    """The handover of this job, and behind whom it stands; None: there is none."""
    rows = yield from execute("place_of_handover", id=job_id)
    return (
        PlacedHandover(handover_of(rows[0]), text_or_none(rows[0][COLUMNS]), as_int(rows[0][COLUMNS + 1]))
        if rows
        else None
    )


@operation(alone=True, repeatable=True, writes="")
def counted() -> Steps[HandoverCounts]:
    """How many handovers are under way."""
    ((total, ended),) = yield from execute("count_handovers", limit=COUNTED_MAX)
    return HandoverCounts(as_int(total), as_int_or_none(ended) or 0)


@operation(alone=True, repeatable=True, writes="")
def unconfirmed(*, age_s: float, limit: int) -> Steps[list[UnconfirmedLine]]:
    """Lines in which an end has waited so long to be confirmed, the longest first; 10,000 ends are looked at."""
    rows = yield from execute("unconfirmed_handovers", age_s=age_s, limit=limit, look=COUNTED_MAX)
    return [
        UnconfirmedLine(
            receiver=str(row[0]),
            key=str(row[1]),
            job_id=str(row[2]),
            ended_at_us=whole_or_none(row[3]) or 0,
            token=as_int(row[4]),
            ends=as_int(row[5]),
            now_us=as_int(row[6]),
        )
        for row in rows
    ]


def handover_document(found: PlacedHandover) -> dict[str, object]:
    """What programs read of a handover: its columns, result and error as they are stored, and where it stands."""
    hidden = ("result_text", "error_text", "packing")
    columns = msgspec.structs.asdict(found.handover)
    told = instants((name, value) for name, value in columns.items() if name not in hidden)
    stored = {"result": _stored(found.handover.result_text), "error": _stored(found.handover.error_text)}
    return {**told, **stored, "behind": found.behind, "standing": found.standing}


def _stored(text: str | None) -> object:
    """A stored document; what is none stays text."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except UNREADABLE:
        return text
