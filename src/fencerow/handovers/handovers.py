"""The operations on handovers: take, confirm, release, forget, and write ends that were missed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from fencerow.core.errors import MalformedPayload
from fencerow.core.model.job import At, AtOrNone, instant, moment
from fencerow.core.model.packed import Bound
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.state import State
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import whole_or_none
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.removal import Looked
from fencerow.db.run import (
    Row,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    first_column,
    operation,
    text_or_none,
)

COLUMNS = 20
BESIDE = 100  # lines beyond the limit that a take looks at, to choose the oldest


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job on its way to a receiver. Instants are microseconds since 1970 by the database's clock. What
    cannot be read, because something else wrote it, reads as nothing.

    `state`: how the job ended; None: it has not. `token` counts the takes: with `holder`, the id of one take, it is the
    fence under which this one is confirmed. `held_until_us`: from then on it waits for nobody before it; `free_at_us`:
    until then nobody else takes it. `packing`: how the result is read.
    """

    job_id: str
    receiver: str
    key: str
    name: str
    state: State | None
    attempt: int | None
    result_text: str | None
    error_text: str | None
    token: int
    holder: str | None
    taken_by: str | None
    hold_s: float
    place: int
    lined_at_us: int
    ended_at_us: int | None
    held_until_us: int | None
    taken_at_us: int | None
    free_at_us: int | None
    confirmed_at_us: int | None
    confirmed_by: str | None
    packing: Packing = PLAIN

    lined_at = At("lined_at_us")
    held_until = AtOrNone("held_until_us")
    taken_at = AtOrNone("taken_at_us")
    free_at = AtOrNone("free_at_us")

    @property
    def succeeded(self) -> bool:
        """Whether the job succeeded, so that there is a result."""
        return self.state is State.SUCCEEDED

    @property
    def result(self) -> Any:
        """What the job returned, as JSON data; None if it did not succeed, or once this is confirmed.

        Raises:
            MalformedPayload: something other than Fencerow wrote it.
            SealKeyUnknown: it is sealed or signed, and this client has no such key.
            PayloadAltered: it is not what the job returned.
            StoreUnavailable, PayloadMissing: it is large, and is not to be had from its store.
            BlockingCall: large results lie in a store, and this is an event loop: `await handover.aresult()`. So it is
                for small ones, too.
        """
        if self.packing.waits:
            refuse_in_loop()
        if self.result_text is None:
            return None
        plain = self.packing.unpack(self.result_text.encode(), Bound.result(self.job_id))
        return _json(plain.decode(), self.job_id)

    async def aresult(self) -> Any:
        """`result` for async code."""
        if self.result_text is None:
            return None
        plain = await self.packing.aunpack(self.result_text.encode(), Bound.result(self.job_id))
        return _json(plain.decode(), self.job_id)

    @property
    def error(self) -> Any:
        """What ended the job, as JSON data: `type`, `message`, `code`; None if it succeeded, or once this is confirmed.

        Raises:
            MalformedPayload: something other than Fencerow wrote it.
        """
        return _json(self.error_text, self.job_id)

    @property
    def submitted_at(self) -> datetime:
        """When its job took its place in the line."""
        return moment(self.lined_at_us)

    @property
    def ended_at(self) -> datetime | None:
        """When the job ended; None: it has not."""
        return instant(self.ended_at_us)

    @property
    def confirmed_at(self) -> datetime | None:
        """When it was confirmed; None: it was not."""
        return instant(self.confirmed_at_us)


def _json(text: str | None, job_id: str) -> Any:
    try:
        return None if text is None else msgspec.json.decode(text)
    except UNREADABLE as error:
        raise MalformedPayload(
            f"the handover of job {job_id} cannot be decoded: {error}",
            "something other than Fencerow wrote it",
            "look at it with `fencerow handovers show`",
        ) from None


class TakeOf(msgspec.Struct, frozen=True):
    """Who takes. `holder` is made for one take alone, so that its answer may be lost and asked for again. `after`: the
    key that was served last, so that the others come first."""

    receiver: str
    holder: str
    lease_s: float
    taken_by: str | None = None
    after: str = ""


@operation(alone=True, repeatable=True)
def take(taker: TakeOf, *, limit: int) -> Steps[list[Handover]]:
    """Take up to `limit` ends that may be handed over now, in the order of the submits; of each line the first.

    Of very many lines it looks at some, from the one behind `after` on, and takes the oldest ends of those.

    Waits for nobody: what another takes just now is passed over. May be repeated by the same taker, whose tokens stay.
    """
    rows = yield from execute(
        "take_handovers",
        receiver=taker.receiver,
        holder=taker.holder,
        lease_s=taker.lease_s,
        taken_by=taker.taken_by,
        limit=limit,
        after=taker.after,
        beside=BESIDE,
    )
    return sorted(map(handover_of, rows), key=lambda each: each.place)


@operation(alone=True, repeatable=True, writes="")
def next_in_us(receiver: str) -> Steps[int | None]:
    """In how many microseconds time alone lets something be taken; None: only an end or a confirmation does."""
    return as_int_or_none((yield from execute("next_handover", receiver=receiver))[0][0])


@operation(alone=True, repeatable=True)
def confirm(
    job_id: str, *, receiver: str, actor: str | None, holder: str | None = None, token: int | None = None
) -> Steps[bool]:
    """Note that the receiver has this end; false when nothing was changed: `read` says why.

    Without `holder` and `token` whoever has it now loses it. Repeating it changes nothing more.
    """
    rows = yield from execute(
        "confirm_handover", id=job_id, receiver=receiver, actor=actor, holder=holder, token=token
    )
    return bool(rows)


@operation(alone=True, repeatable=True)
def release(job_id: str, *, holder: str, token: int, delay_s: float) -> Steps[bool]:
    """Give a take up: others may take this end after `delay_s` seconds; false when the take was over already."""
    rows = yield from execute("release_handover", id=job_id, holder=holder, token=token, delay_s=delay_s)
    return bool(rows)


@operation(alone=True, repeatable=True, writes="")
def read(job_id: str) -> Steps[tuple[Handover, int] | None]:
    """The handover of this job as it stands, and the time; None: there is none."""
    rows = yield from execute("read_handover", id=job_id)
    return (handover_of(rows[0]), as_int(rows[0][COLUMNS])) if rows else None


@operation(repeatable=True)
def purge(after: int, *, age_s: float, limit: int) -> Steps[Looked[int]]:
    """Forget what was confirmed so long ago and whose job is gone, among so many after this place.

    It goes on after 0 when that was the last.
    """
    ((looked, last),) = yield from execute("handovers_after", after=after, limit=limit)
    if not looked:
        return Looked(0)
    gone = yield from execute("purge_handovers", after=after, last=as_int(last), age_s=age_s)
    return Looked(as_int(last) if looked == limit else 0, as_int(looked), len(gone))


class Mended(msgspec.Struct, frozen=True):
    """Whose ends were written that had been missed, and the place to go on after; 0: that was the last."""

    ids: list[str]
    after: int


@operation()
def mend(after: int, *, limit: int) -> Steps[Mended]:
    """Write the ends of jobs that ended without a word, and shorten holds that were written before the clock went back,
    among so many after this place.

    Somebody who moves or removes a job by hand ends it so. Locks the rows first and looks at the jobs in a later
    statement: a revive either is seen there or waits. Locked rows are left for the next round. May be repeated.
    """
    ((looked, last),) = yield from execute("handovers_after", after=after, limit=limit)
    if not looked:
        return Mended([], 0)
    rows = yield from execute("lock_missed", after=after, last=as_int(last))
    ids: list[str] = []
    if rows:
        places = [as_int(row[0]) for row in rows]
        ids = first_column((yield from execute("write_missed", places=places)))
    yield from execute("shorten_holds", after=after, last=as_int(last))
    return Mended(ids, as_int(last) if looked == limit else 0)


def handover_of(row: Row) -> Handover:
    """A row of a statement that gives the columns of a handover."""
    state = text_or_none(row[4])
    return Handover(
        job_id=str(row[0]),
        receiver=str(row[1]),
        key=str(row[2]),
        name=str(row[3]),
        state=None if state is None else State(state),
        attempt=whole_or_none(row[5]),
        result_text=text_or_none(row[6]),
        error_text=text_or_none(row[7]),
        token=as_int(row[8]),
        holder=text_or_none(row[9]),
        taken_by=text_or_none(row[10]),
        hold_s=float(row[11]),  # type: ignore[arg-type]
        place=as_int(row[12]),
        lined_at_us=whole_or_none(row[13]) or 0,
        ended_at_us=whole_or_none(row[14]),
        held_until_us=whole_or_none(row[15]),
        taken_at_us=whole_or_none(row[16]),
        free_at_us=whole_or_none(row[17]),
        confirmed_at_us=whole_or_none(row[18]),
        confirmed_by=text_or_none(row[19]),
    )
