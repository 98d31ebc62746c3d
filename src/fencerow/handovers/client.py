"""`client.handovers(receiver)`: take the ends of jobs, confirm them, or release them; sync and async."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec

import fencerow.handovers.handovers as store
from fencerow.core.answering import answer
from fencerow.core.client.base import ClientBase, Verbs
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import Busy, ConfigError, InvalidInput, NotReady, OutcomeUnknown, Unavailable
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.ids import new_id, parse_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.wakeup import HandoverFree, encode
from fencerow.core.verb import averb, verb
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.numbers import check_number
from fencerow.db.run import Procedure, WakeUp, ask, joining
from fencerow.db.strikes import SHELTER, Doorway
from fencerow.db.text import check_text
from fencerow.handovers.bell import AsyncBell, Bell
from fencerow.handovers.errors import HandoverLost, HandoverNotFound
from fencerow.handovers.handovers import Handover, TakeOf
from fencerow.handovers.terms import DEFAULT_RECEIVER

log = logging.getLogger("fencerow.handovers")

LEASE_S: Final = 60.0
LEASE_S_MAX: Final = DAY_S
LIMIT_MAX: Final = 1_000
RECEIVER_LENGTH_MAX: Final = 100
LOOK_S: Final = 1.0  # between two looks of who waits, for wake-ups that were lost
REST_S: Final = 0.01  # after a look in vain, so that the ends of others make no hot loop
PASSING = (Unavailable, Busy, OutcomeUnknown)


class ConfirmAnswer(msgspec.Struct, frozen=True):
    """What a confirmation came to. `replay`: the handover was confirmed before."""

    job_id: str
    replay: bool = False


@answer
class Receiver(Verbs):
    """Takes the ends of jobs that go to one receiver. Each method has an async twin with an `a` in front.

    Any number of processes may take for the same receiver. `for handover in receiver` waits for the next one, for
    ever; `async for` does so in an event loop. What was taken and is not confirmed when its lease is over is handed
    over again, to whoever takes next: deliver so that twice does no harm, or confirm in the transaction that delivers.
    """

    def __init__(self, client: ClientBase, receiver: str = DEFAULT_RECEIVER, *, after: str = "") -> None:
        super().__init__(client)
        self.receiver = check_text(receiver, "the receiver", RECEIVER_LENGTH_MAX)
        self._after = after  # the key that was served last

    # --- taking ------------------------------------------------------------------------------------

    def take(
        self,
        limit: int = 1,
        *,
        lease_s: Seconds = LEASE_S,
        wait_s: Seconds | None = 0.0,
        take_id: str | None = None,
    ) -> list[Handover]:
        """Take up to `limit` ends, in the order of their submits; wait up to `wait_s` seconds for the first (None: for
        ever), and return none after that.

        Of each key there is the first that is not confirmed, and what has waited for those before it for as long as it
        may. Of very many keys it looks at some, those behind the key that was served last first. What it took is this
        caller's for `lease_s` seconds. No row stays locked. A take whose answer was lost is repeated with the same
        `take_id`, a UUID of the caller's own for this one take: it gets what it had.

        Raises:
            InvalidInput: `limit` is not from 1 to 1,000, or `lease_s` not from 1 second to a day.
            Unavailable, Busy, OutcomeUnknown: the database could not be asked in time. Take again.
        """
        taker, until = self._taker(limit, lease_s, take_id), _until(wait_s)
        refuse_in_loop()
        if wait_s == 0.0:
            return self._readable(self._run(taking(taker, limit)))
        with Doorway(Bell(self._client.engine)) as bell:
            return self._wait(bell, taker, limit, until)

    async def atake(
        self,
        limit: int = 1,
        *,
        lease_s: Seconds = LEASE_S,
        wait_s: Seconds | None = 0.0,
        take_id: str | None = None,
    ) -> list[Handover]:
        """`take` for async code. A caller that is cancelled may have taken some: they come again after the lease; or at
        once, to who takes again with the same `take_id`."""
        taker, until = self._taker(limit, lease_s, take_id), _until(wait_s)
        if wait_s == 0.0:
            return self._readable(await self._arun(taking(taker, limit)))
        async with AsyncBell(self._client.engine) as bell:
            return await self._await(bell, taker, limit, until)

    def each(self, *, lease_s: Seconds = LEASE_S) -> Iterator[Handover]:
        """One after the other as they can be taken, for ever. The database's trouble is waited out.

        Raises:
            InvalidInput: `lease_s` is not from 1 second to a day.
        """
        refuse_in_loop()
        with Doorway(Bell(self._client.engine)) as bell:
            while True:
                yield from self._wait(bell, self._taker(1, lease_s), 1, float("inf"))

    async def aeach(self, *, lease_s: Seconds = LEASE_S) -> AsyncIterator[Handover]:
        """`each` for async code."""
        async with AsyncBell(self._client.engine) as bell:
            while True:
                for each in await self._await(bell, self._taker(1, lease_s), 1, float("inf")):
                    yield each

    def __iter__(self) -> Iterator[Handover]:
        return self.each()

    def __aiter__(self) -> AsyncIterator[Handover]:
        return self.aeach()

    def _wait(self, bell: Bell, taker: TakeOf, limit: int, until: float) -> list[Handover]:
        while True:
            try:
                found, pause_s = self._run(taking_or_pausing(taker, limit))
            except PASSING as error:
                found, pause_s = [], _passing(error, until)
            if found or time.monotonic() >= until:
                return self._readable(found)
            bell.wait(min(pause_s, until - time.monotonic()))

    async def _await(self, bell: AsyncBell, taker: TakeOf, limit: int, until: float) -> list[Handover]:
        while True:
            try:
                found, pause_s = await self._arun(taking_or_pausing(taker, limit))
            except PASSING as error:
                found, pause_s = [], _passing(error, until)
            if found or time.monotonic() >= until:
                return self._readable(found)
            await bell.wait(min(pause_s, until - time.monotonic()))

    # --- what was taken ----------------------------------------------------------------------------

    @verb
    def confirm(
        self, handover: Handover | Ref, *, connection: object | None = None
    ) -> Procedure[ConfirmAnswer]:
        """Confirm that the receiver has this end: it is not handed over again, and the next of its key may be taken.

        A `Handover` is confirmed under its take: late is not too late while nobody else has taken it. A job, by its id
        or `Key`, is confirmed whoever has it. Confirming again changes nothing, and the answer says so (`replay`).

        With `connection` it is part of the transaction that is open there: deliver by what you write there, and it is
        delivered exactly once.

        Raises:
            HandoverLost: the lease was over and somebody else took it, or the job was revived. Nothing is changed.
            HandoverNotFound: the id is unknown, or this job's end does not go to this receiver.
            NotReady: the job has not ended.
        """
        if isinstance(handover, Handover):
            _refuse_foreign(handover, self.receiver)
            job_id, holder, token = handover.job_id, handover.holder, handover.token
        else:
            job_id, holder, token = (yield from resolving(handover)), None, None
        confirming = store.confirm(
            job_id, receiver=self.receiver, actor=self._client.actor, holder=holder, token=token
        )
        if (yield from ask(joining(confirming, connection))):
            if connection is None:
                yield WakeUp([FREE])
            return ConfirmAnswer(job_id)
        known = yield from ask(joining(store.read(job_id), connection))
        return _confirmed_before(job_id, self.receiver, None if known is None else known[0], holder, token)

    aconfirm = averb(confirm)

    @verb
    def release(self, handover: Handover, *, delay_s: Seconds = 0.0) -> Procedure[bool]:
        """Give a take up before its lease is over: anybody may take it again after `delay_s` seconds.

        False: the take was over already, and nothing is changed.

        Raises:
            InvalidInput: `delay_s` is not from 0 seconds to a day.
        """
        seconds = _checked("delay_s", delay_s, 0.0)
        _refuse_foreign(handover, self.receiver)
        assert handover.holder is not None
        released = yield from ask(
            store.release(handover.job_id, holder=handover.holder, token=handover.token, delay_s=seconds)
        )
        if released:
            yield WakeUp([FREE])
        return released

    arelease = averb(release)

    @verb
    def get(self, ref: Ref) -> Procedure[Handover]:
        """The handover of a job as it stands. Nothing is locked or changed.

        Raises:
            HandoverNotFound: the id is unknown, or this job's end does not go to this receiver.
        """
        job_id = yield from resolving(ref)
        known = yield from ask(store.read(job_id))
        if known is None or known[0].receiver != self.receiver:
            raise _not_found(job_id, self.receiver, None if known is None else known[0])
        return self._readable([known[0]])[0]

    aget = averb(get)

    def _readable(self, found: list[Handover]) -> list[Handover]:
        """With the way in which this client reads results."""
        if found:
            self._after = found[-1].key
        packing = self._client.packing
        return [msgspec.structs.replace(each, packing=packing) for each in found]

    def _taker(self, limit: int, lease_s: Seconds, take_id: str | None = None) -> TakeOf:
        if isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
            raise InvalidInput(f"limit is {limit}", f"1 to {LIMIT_MAX} are taken at once", "correct limit")
        by = self._client.actor or f"{socket.gethostname()}, pid {os.getpid()}"
        holder = new_id() if take_id is None else parse_id(take_id)
        return TakeOf(self.receiver, holder, _checked("lease_s", lease_s, 1.0), by[:200], self._after)


FREE: Final = encode(HandoverFree())


def taking(taker: TakeOf, limit: int) -> Procedure[list[Handover]]:
    """Look once for what can be taken."""
    return (yield from ask(store.take(taker, limit=limit)))


def taking_or_pausing(taker: TakeOf, limit: int) -> Procedure[tuple[list[Handover], float]]:
    """Look, and say how long who found nothing may sleep if no wake-up comes."""
    found = yield from ask(store.take(taker, limit=limit))
    if found:
        return found, 0.0
    next_us = yield from ask(store.next_in_us(taker.receiver))
    return [], LOOK_S if next_us is None else max(REST_S, min(LOOK_S, next_us / 1e6 + 0.001))


def _until(wait_s: Seconds | None) -> float:
    seconds = in_seconds(wait_s)
    if seconds is None:
        return float("inf")
    return time.monotonic() + _checked("wait_s", seconds, 0.0)


def _passing(error: Exception, until: float) -> float:
    """Whoever waits waits out the database's trouble, but no longer than he said."""
    if time.monotonic() >= until:
        raise error
    with SHELTER:  # a handler of the log has a lock
        log.debug("a take is tried again: %s", error)
    return LOOK_S


def _checked(name: str, value: Seconds, least: float) -> float:
    try:
        check_number(name, in_seconds(value), least, LEASE_S_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    return float(in_seconds(value))


def _refuse_foreign(handover: Handover, receiver: str) -> None:
    if handover.receiver != receiver:
        raise _not_found(handover.job_id, receiver, handover)


def _confirmed_before(
    job_id: str, receiver: str, known: Handover | None, holder: str | None, token: int | None
) -> ConfirmAnswer:
    """What to answer whose confirmation changed nothing: by a later look, for in the same statement it would be older.

    Raises:
        HandoverLost, HandoverNotFound, NotReady: see `Receiver.confirm`.
    """
    if known is None or known.receiver != receiver:
        raise _not_found(job_id, receiver, known)
    if known.confirmed_at_us is not None and (
        holder is None or (known.holder, known.token) == (holder, token)
    ):
        return ConfirmAnswer(job_id, replay=True)
    if holder is None:
        raise NotReady(
            f"job {job_id} has not ended", "there is no end that could be confirmed", "confirm it when it has"
        )
    now = (
        "its job was revived"
        if known.state is None
        else f"{known.taken_by or 'somebody else'} {'has confirmed' if known.confirmed_at_us else 'has taken'} it since"
    )
    raise HandoverLost(
        f"the take {token} of the handover of job {job_id} is over: {now}",
        "its lease ended before it was confirmed, or a person asked for it",
        "leave it to whoever has it now; pass a longer lease_s if the work takes longer",
    )


def _not_found(job_id: str, receiver: str, known: Handover | None) -> HandoverNotFound:
    found = "no job of this id is handed over" if known is None else f"it goes to {known.receiver!r}"
    return HandoverNotFound(
        f"there is no handover of job {job_id} to {receiver!r}",
        found,
        "check the id, and the receiver in the job's handover=",
    )
