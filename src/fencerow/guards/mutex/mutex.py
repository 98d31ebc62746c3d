"""`Mutex`: one at a time per key, over all processes, with a token that tells the newest holder from all before."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.answering import answer
from fencerow.core.errors import InvalidInput
from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.store.running import Running, running
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.run import arun as arun_requests
from fencerow.db.run import run as run_requests
from fencerow.db.strikes import SHELTER, closed, doorway, opened, sheltered
from fencerow.guards.mutex.errors import MutexMisuse, StaleToken
from fencerow.guards.mutex.hold import Hold
from fencerow.guards.mutex.holding import agive_back, give_back, give_up, hold_of, keep, left_behind
from fencerow.guards.mutex.losing import Canceller
from fencerow.guards.mutex.nesting import left, refuse_nested
from fencerow.guards.mutex.taking import MutexTake, TakeInFlight, taking
from fencerow.guards.mutex.terms import DEFERRALS_MAX, terms_of
from fencerow.guards.settings import GuardSettings
from fencerow.located import arun, run


@answer
class Mutex:
    """The mutex of one key: it has one holder at a time, in this process and all others of the same database.

        with Mutex(app, "provider:17", purpose="deal") as held:   # or `async with`
            held.check()
            with app_connection as db:
                held.guard(db)   # this transaction and the next holder's never overlap
                ...

    It is a row with a lease. A thread renews the lease while the mutex is held. Others may take the mutex
    `stale_s` seconds after the last renewal, by the database's clock, so a holder that dies blocks nobody for
    long. Nothing can stop a holder that is only slow; it learns of the loss (`lost`, `check`), and its later
    writes with `guard` are refused. An object is one holder: make one for each use.

    `wait_s`: how long to wait while the mutex is busy; 0 refuses at once. The default is 10 s, or 1 s with
    `busy="snooze"`. `busy="snooze"`: inside a job, the job then snoozes (for 2, 4, 8, 16, 30, 30 … s, with
    `deferral_jitter` between half and all of it), so that its slot is free meanwhile. This uses no attempt.
    After `deferrals_max` times in a row for this mutex the attempt fails with MutexBusy. `cancel_on_loss`:
    `async with` cancels the code inside when the mutex is lost, and raises MutexLost.

    Inside a job the mutex belongs to the attempt: a stale attempt cannot take or keep it. If an attempt
    leaves it behind, the next attempt of the same job gets it at once.
    """

    def __init__(
        self,
        place: Locator,
        key: str,
        *,
        purpose: str | None = None,
        stale_s: Seconds | None = None,
        wait_s: Seconds | None = None,
        busy: Literal["raise", "snooze"] = "raise",
        deferrals_max: int = DEFERRALS_MAX,
        deferral_jitter: bool = False,
        cancel_on_loss: bool = False,
    ) -> None:
        """The database is not used yet.

        Raises:
            InvalidInput: the key, the purpose or a number cannot be used.
        """
        self._place = place
        self._terms = terms_of(
            key,
            purpose=purpose,
            stale_s=GuardSettings.of(place.config).mutex_stale_s if stale_s is None else stale_s,
            wait_s=wait_s,
            busy=busy,
            deferrals_max=deferrals_max,
            deferral_jitter=deferral_jitter,
        )
        self._cancel_on_loss = cancel_on_loss
        self._using = threading.Lock()  # closed while it is being taken
        self._hold: Hold | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._canceller: Canceller | None = None

    def __repr__(self) -> str:
        hold = self._hold
        state = "not held" if hold is None else f"token {hold.token}{', lost' if hold.lost else ''}"
        return f"<Mutex {self.key!r} {state}>"

    # --- what it is ------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """The key of this mutex."""
        return self._terms.key

    @property
    def token(self) -> int:
        """The number of this take: higher than that of every holder before. Use it as a fence for other systems.

        Raises:
            MutexMisuse: it was not taken by this object.
        """
        return self._own().token

    @property
    def held(self) -> bool:
        """Whether this object took it and may rely on it now."""
        return self._hold is not None and self._hold.is_held

    @property
    def lost(self) -> bool:
        """Whether it was taken and may be somebody else's by now. Does not use the database, so it costs nothing."""
        return self._hold is not None and self._hold.lost

    def check(self) -> None:
        """Raise unless the mutex is held and you may rely on it now. Does not use the database, so it costs nothing.

        Raises:
            MutexLost: it may be somebody else's by now. Stop what needs it.
            MutexMisuse: it was not taken by this object.
        """
        self._own().check()

    def wait_lost(self, timeout_s: Seconds) -> bool:
        """For plain code: wait this long, or until it is lost; returns whether it is."""
        return self._own().wait_lost(in_seconds(timeout_s))

    # --- taking and giving back --------------------------------------------------------------------

    def acquire(self) -> int:
        """Take it, and return its token. It is renewed until `release`; better use `with`.

        Raises:
            MutexBusy: somebody else held it until the wait was over. Nothing was taken.
            Snooze: in a job with `busy="snooze"`: let it pass through.
            LeaseLost: the job belongs to a newer attempt. Nothing was taken.
            MutexMisuse: this code holds it already, and would wait for itself.
            BlockingCall: inside a running event loop.
        """
        refuse_in_loop()
        with self._used() as attempt:
            check_tables(self._place)
            holder, asked = new_id(), TakeInFlight(self._place.engine)
            try:
                taken = run_requests(taking(self._terms, holder, attempt), asked.run)
                with SHELTER:
                    token = self._took(taken, holder, attempt)
            except BaseException as error:
                with SHELTER:
                    self._leave()  # taken, if a strike was waiting behind it: its caller never learns of that
                    give_up(self._place.engine, self._terms, holder, asked, error)
                raise
            return token

    async def aacquire(self) -> int:
        """`acquire` for async code."""
        attempt = self._begin()
        try:
            await acheck_tables(self._place)
            holder, asked = new_id(), TakeInFlight(self._place.engine)
            try:
                taken = await arun_requests(taking(self._terms, holder, attempt), asked.arun)
            except BaseException as error:
                give_up(self._place.engine, self._terms, holder, asked, error)
                raise
            return self._took(taken, holder, attempt)
        finally:
            self._using.release()

    def release(self) -> bool:
        """Release it; returns false if this object did not hold it any more, and then changes nothing.

        True means that nobody else had it in between, even if it was late. After an error of the database it
        is released in the background; in the worst case it becomes stale.
        """
        refuse_in_loop()
        with SHELTER:
            hold = self._leave()
            if hold is None:
                return False
            return give_back(hold)

    async def arelease(self) -> bool:
        """`release` for async code."""
        hold = self._leave()
        return False if hold is None else await agive_back(hold)

    def __enter__(self) -> Self:
        held = self._hold
        try:
            self.acquire()
            with SHELTER:
                opened(self, lambda _: self.release())
        except BaseException:
            if self._hold is not held:  # struck on the way back: the block is not come to, nor left
                self.release()
            raise
        return self

    @sheltered
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, released = self._hold, False
        late = self.lost
        try:
            released = self.release()
        except Exception as trouble:
            released = left_behind(trouble, late)
        if hold is not None and not released and error is None:
            raise hold.loss()

    async def __aenter__(self) -> Self:
        await self.aacquire()
        if self._cancel_on_loss and self._hold is not None:
            self._canceller = Canceller(self._hold)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, released, late = self._hold, False, self.lost
        canceller, self._canceller = self._canceller, None
        if canceller is not None:
            canceller.leave()
        try:
            released = await self.arelease()
        except Exception as trouble:
            released = left_behind(trouble, late)
        cancelled = canceller is not None and canceller.was_ours(error)
        if hold is not None and (cancelled or (not released and error is None)):
            raise hold.loss() from error

    # --- guarding ----------------------------------------------------------------------------------

    def guard(self, connection: object, token: int | None = None) -> None:
        """Refuse an old token in your transaction, and let nobody take the mutex until it ends.

        What you write in the transaction is then done before the next holder starts. `token` is that of this
        object, unless you pass the token of another process. Locks the mutex's row.

        Raises:
            StaleToken: somebody else has taken the mutex since, or it was released. Roll back.
            UnusableConnection: no transaction is open there, so nothing would be guarded.
            RetryTransaction: roll back and run the whole transaction again.
        """
        asked = self._own().token if token is None else token
        check_tables(self._place)
        if not run(self._place, mutexes.guard(self.key, token=asked), _given(connection)):
            raise self._stale(asked)

    async def aguard(self, connection: object, token: int | None = None) -> None:
        """`guard` for async code; the connection is an async one."""
        asked = self._own().token if token is None else token
        await acheck_tables(self._place)
        if not await arun(self._place, mutexes.guard(self.key, token=asked), _given(connection)):
            raise self._stale(asked)

    # --- inside ------------------------------------------------------------------------------------

    def _own(self) -> Hold:
        if self._hold is None:
            raise MutexMisuse(
                f"the mutex {self.key!r} is not held by this object", "it must be taken first", "use `with`"
            )
        return self._hold

    @doorway
    @contextmanager
    def _used(self) -> Iterator[Running | None]:
        attempt = self._begin()
        try:
            yield attempt
        finally:
            self._using.release()

    def _begin(self) -> Running | None:
        """Refuse what would wait for itself; returns the attempt that this code runs in."""
        refuse_nested(self._place.engine, self.key, self._hold)
        if self._hold is not None or not self._using.acquire(blocking=False):
            raise MutexMisuse(
                f"this Mutex object for {self.key!r} is in use",
                "an object is one holder, and can be taken once at a time",
                "make one for each use: with Mutex(app, key)",
            )
        return running.get()

    def _took(self, taken: MutexTake, holder: str, attempt: Running | None) -> int:
        self._hold = hold_of(self._place.engine, self._terms, taken, holder, attempt)
        self._finalizer = keep(self, self._hold)
        return self._hold.token

    def _leave(self) -> Hold | None:
        """End the hold here; what is left is to tell the database."""
        hold = self._hold
        if hold is not None and not hold.is_mine:
            raise MutexMisuse(
                f"the mutex {self.key!r} is held by the process that this one was forked from",
                "only that process can release it",
                "take a mutex after the fork",
            )
        self._hold = None
        closed(self)
        if hold is not None:
            if self._finalizer is not None:
                self._finalizer.detach()
            hold.end()
            left(hold)
        return hold

    def _stale(self, token: int) -> StaleToken:
        return StaleToken(
            f"token {token} of the mutex {self.key!r} is not the current one",
            "it was released, freed by an operator, or taken by somebody else since",
            "roll back; whoever holds it now does the work",
        )


def _given(connection: object | None) -> object:
    if connection is None:
        raise InvalidInput(
            "a guard was asked for without a connection", "a guard is part of your own transaction", "pass it"
        )
    return connection
