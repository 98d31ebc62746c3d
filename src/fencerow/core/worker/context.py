"""`Job`: what a running handler may know and ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from fencerow.core.answering import answer
from fencerow.core.config import CoreConfig
from fencerow.core.errors import CancelRequested, InvalidInput, TransactionMisuse
from fencerow.core.model.control import Snooze
from fencerow.core.model.job import EPOCH
from fencerow.core.model.percent import percent_of
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.submission import PreparedCall
from fencerow.core.store import store
from fencerow.core.worker.attempt import Attempt, Interrupt, lease_lost
from fencerow.core.worker.follow_ups import AsStored, FollowUps, PreparedJobs
from fencerow.core.worker.lines import LEVELS, mirror
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.db.service import loop_here
from fencerow.db.strikes import SHELTER
from fencerow.db.text import check_text, shown

if TYPE_CHECKING:
    from fencerow.core.worker.transaction import JobTransaction

S = TypeVar("S")

NOTE_LENGTH_MAX = 500
LINE_LENGTH_MAX = 10_000


class Done:
    """An awaitable that is over: what a call made from a plain handler has returned."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


@answer
class Job:
    """One attempt of a job, as its handler sees it.

    In an `async def` handler, await `progress` and `log`; in a plain `def` handler they are done when they
    return. Every write names the attempt. If the attempt has lost its lease, the write changes nothing and
    raises `LeaseLost`.
    """

    __slots__ = (
        "_attempt", "_config", "_engine", "_held_max_s", "_loop", "follow_ups", "kept", "opened_transaction",
    )  # fmt: skip

    def __init__(
        self,
        attempt: Attempt,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        held_max_s: float | None = None,
        as_stored: AsStored | None = None,
        config: CoreConfig | None = None,
    ) -> None:
        self._attempt = attempt
        self._engine = engine
        self._loop = loop
        self._config = config or CoreConfig()  # for the verbs of wings
        self._held_max_s = held_max_s  # how long its transaction may be open, if others wait for it
        # What is submitted together with its success. For the worker.
        self.follow_ups = FollowUps(as_stored)
        # What wings keep of this attempt, by their names. Their verbs are in a subclass: job_type.py.
        self.kept: dict[str, Any] | None = None
        # The transaction that the handler asked for, if it did. For the worker.
        self.opened_transaction: JobTransaction[Any] | None = None

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.id} attempt {self.attempt}>"

    # --- what it is ------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The job's id: the same in every attempt, so a good idempotency key for other systems."""
        return self._attempt.claimed.id

    @property
    def name(self) -> str:
        """The job's name: that of its handler, and what is stored."""
        return self._attempt.claimed.name

    @property
    def queue(self) -> str:
        """The queue it was claimed from."""
        return self._attempt.claimed.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt. Together with the id it is a fencing token for other systems: it never
        gets smaller."""
        return self._attempt.claimed.attempt

    @property
    def holder(self) -> str:
        """The registration of the worker that runs this attempt. Together with the number it is the fence of
        every write."""
        return self._attempt.holder

    @property
    def failures(self) -> int:
        """Failed attempts before this one, since the submit or the last revive."""
        return self._attempt.claimed.failures

    @property
    def attempts_max(self) -> int:
        """The job fails after so many failed attempts."""
        return self._attempt.claimed.attempts_max

    @property
    def snoozes(self) -> int:
        """How often it was snoozed, since the submit or the last revive."""
        return self._attempt.claimed.snoozes

    @property
    def priority(self) -> int:
        """From -100 to 100; the higher goes first."""
        return self._attempt.claimed.priority

    @property
    def tags(self) -> Sequence[str]:
        """The labels that its submit gave it; `fencerow jobs list --tag` finds the job by them."""
        return tuple(self._attempt.claimed.tags or ())

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata that its submit stored with it; a copy."""
        return dict(self._attempt.claimed.metadata or {})

    @property
    def headers(self) -> Mapping[str, str]:
        """Texts that travel with the job beside its arguments: trace context, correlation id."""
        return dict(self._attempt.claimed.headers or {})

    @property
    def submitted_at(self) -> datetime:
        """When it was submitted, by the database's clock."""
        return EPOCH + timedelta(microseconds=self._attempt.claimed.submitted_at_us)

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the attempt times out, or None when it has no limit."""
        if self._attempt.timeout_s is None:
            return None
        return max(0.0, self._attempt.started + self._attempt.timeout_s - time.monotonic())

    # --- whether it should go on -------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: a cancel, a timeout, a lost lease, a shutdown."""
        return self._attempt.asked_to_end

    def raise_if_cancelled(self) -> None:
        """Raise an error if the handler should stop.

        Raises:
            LeaseLost: the job belongs to a newer attempt.
            CancelRequested: somebody asked for the cancel, or the worker stops. Let this error pass through.
        """
        if not self._attempt.asked_to_end:
            return
        if self._attempt.interrupt is Interrupt.LOST:
            raise lease_lost(self.id, self.attempt)
        raise CancelRequested(
            f"job {self.id} was asked to stop ({self._attempt.interrupt})", "", "let this error pass through"
        )

    def wait_cancelled(self, timeout_s: Seconds) -> bool:
        """For plain handlers: wait this long, or until the handler should stop; returns whether it should."""
        with SHELTER:  # whoever asks it to stop sets the event first, and must find it unlocked
            return self._attempt.thread_event.wait(in_seconds(timeout_s))

    def snooze(self, delay_s: Seconds, reason: str = "") -> NoReturn:
        """End this attempt, and run the job again after `delay_s` seconds. This counts as no failure."""
        raise Snooze(delay_s, reason)

    # --- what follows it ---------------------------------------------------------------------------

    def submit_next(self, call: PreparedCall | PreparedJobs) -> str:
        """Submit another job, or a whole flow, together with this one's success; returns its id.

            job.submit_next(send.call(to="ada"))
            job.submit_next(tidy.using(delay_s=3600).call(folder))
            job.submit_next(flow)       # app.flow("report"), put together in the handler

        Nothing is sent now, so there is nothing to await: the follow-ups are stored in the transaction in which the
        attempt succeeds, that of `job.transaction()` too. If it fails, is retried or has lost its lease, they never
        existed, and the next attempt makes its own. May be repeated, for up to 1,000 jobs with 4 MiB of arguments.

        A follow-up that the database refuses, because its key belongs to another payload or its limit was removed, ends
        this job as failed, and none of them is stored. A job that counts as the same and is there already stays.

        Raises:
            InvalidInput: it was not made by `job.call(...)`, names a connection, or is one too many; or the flow has a
                key, or was handed over before.
        """
        return self.follow_ups.add(call)

    # --- what it says ------------------------------------------------------------------------------

    def progress(self, percent: float, note: str | None = None) -> Awaitable[None]:
        """Say how far the attempt is, from 0 to 100. May be repeated.

        Raises:
            InvalidInput: the percentage or the note cannot be kept. Nothing was stored.
            LeaseLost: this attempt no longer holds the job. Stop working on it.
        """
        done = percent_of(percent)
        if note is not None:
            check_text(note, "the note of job.progress", NOTE_LENGTH_MAX, lines=True, empty=True)
        return self._write(
            store.progress(
                self.id, holder=self._attempt.holder, attempt=self.attempt, percent=done, note=note
            )
        )

    def log(self, message: str, level: str = "info") -> Awaitable[None]:
        """Store a line with the job. It is shown beside the timeline, and in the worker's log.

        Raises:
            InvalidInput: the line or the level cannot be kept. Nothing was stored.
            LeaseLost: this attempt no longer holds the job. Stop working on it.
        """
        check_text(message, "the line of job.log", LINE_LENGTH_MAX, lines=True)
        if level not in LEVELS:
            raise InvalidInput(
                f"the level of job.log is {shown(level)}", f"one of {', '.join(LEVELS)} is expected", ""
            )
        mirror(self._attempt, level, message)
        return self._write(
            store.log(
                self.id, holder=self._attempt.holder, attempt=self.attempt, level=level, message=message
            )
        )

    @overload
    def transaction(self) -> JobTransaction[Any]: ...

    @overload
    def transaction(self, *, session: Callable[[], S]) -> JobTransaction[S]: ...

    @overload
    def transaction(self, *, session: S) -> JobTransaction[S]: ...

    def transaction(self, *, session: object | None = None) -> JobTransaction[Any]:
        """A transaction on the job's own database that commits together with the job's success, or not at all.

            async with job.transaction() as connection:      # in a plain handler: with job.transaction() ...
                await connection.execute("INSERT INTO invoice ...")

            async with job.transaction(session=make_session) as session:
                session.add(Invoice(...))

        The block gives the driver's own connection (psycopg, or sqlite3 on SQLite). Leaving the block does
        not commit: the commit happens when the handler returns, in one transaction with its result. If the
        handler raises, or the attempt has lost its lease, all of it is rolled back. Use it once per attempt.
        On SQLite it holds the file's one write lock, and may last at most a third of the lease.

        `session`: your SQLAlchemy `async_sessionmaker` (in a plain handler a `sessionmaker`), any function that makes
        a session, or a new session. The block gives the session, in a transaction on a connection of your own engine,
        whose driver does not matter. Leaving the block flushes it, so that is where an IntegrityError is raised. Its
        commit and rollback are Fencerow's; use `begin_nested()` for a part that may fail. A session that was made
        here is closed at the end. In a plain handler it may be Django's connection instead, in no `atomic()` block yet:
        then the block is one, and what is done with models in it is committed with the success.

        Raises:
            TransactionMisuse: it was entered before in this attempt, or the session was committed, rolled back or
                closed by the handler.
            UnusableConnection: the session is of the wrong kind, in use, in autocommit, or on another database.
                Nothing was written.
        """
        if self.opened_transaction is not None:
            raise TransactionMisuse(
                "job.transaction() was asked for twice in one attempt",
                "effects and success are one commit, so an attempt has one transaction",
                "do all writes in one block",
            )
        from fencerow.core.worker.transaction import JobTransaction  # who asks for none never loads it

        transaction: JobTransaction[Any] = JobTransaction(
            self._engine, self._attempt, lambda: self._limit(transaction), session, self.follow_ups
        )
        self.opened_transaction = transaction
        return transaction

    def is_committed_on(self, connection: object) -> bool:
        """Whether the commit of this connection is the job's success. For the worker."""
        return self.opened_transaction is not None and self.opened_transaction.is_on(connection)

    async def settle(self, *, failed: bool) -> None:
        """The handler has ended, and nothing of it is committed yet. Here a wing writes what it holds back of what the
        handler said; called if it keeps something of this attempt. For the worker.

        `failed`: the handler has raised an error, which nothing that is raised here may hide.
        """

    def keeps_out(self, engine: object) -> bool:
        """Whether this attempt's open transaction keeps all other writers out of that database. For the worker."""
        inside = self._inside()
        return inside is not None and inside.is_open and engine is self._engine

    def _limit(self, transaction: JobTransaction[Any]) -> None:
        if self._held_max_s is not None:
            self._loop.call_soon_threadsafe(
                self._attempt.limit_hold, self._held_max_s, lambda: transaction.is_open
            )

    def _write(self, operation: Operation[bool]) -> Awaitable[None]:
        if not self._on_loop():
            inside = self._inside()
            session = inside.session if inside is not None else None
            self._check_held((session or self._engine).run(operation))
            return Done()
        # A task at once, not a coroutine: a forgotten await must not be a silent loss.
        return asyncio.ensure_future(self._awrite(operation))

    async def _awrite(self, operation: Operation[bool]) -> None:
        inside = self._inside()
        session = inside.asession if inside is not None else None
        self._check_held(await (session or self._engine).arun(operation))

    def _inside(self) -> JobTransaction[Any] | None:
        """Where there is one writer, what is said inside the handler's transaction must travel in it."""
        return self.opened_transaction if self._engine.traits.one_writer else None

    def _check_held(self, held: bool) -> None:
        if not held:
            raise lease_lost(self.id, self.attempt)

    def _on_loop(self) -> bool:
        return loop_here() is self._loop


# Its first parameter is the running job, which has the verbs of wings beside those that stand here.
