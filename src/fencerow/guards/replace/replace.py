"""`replace_for`: the rows of one source in a user's table, replaced as a whole; the newest content wins."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import fencerow.guards.replace.sources as sources
from fencerow.core.db.locator import Locator, acheck_tables, arun, arun_back, check_tables, run, still_open
from fencerow.core.db.run import Operation, Steps
from fencerow.core.errors import FencerowError, InvalidInput
from fencerow.core.model.ids import new_id
from fencerow.core.store.running import Running, running
from fencerow.guards.checked import STALE_S_MIN, check_key, check_seconds, owner_now
from fencerow.guards.once.errors import OnceMisuse, SourceBusy
from fencerow.guards.pauses import pauses
from fencerow.guards.replace.sources import (
    Found,
    Reservation,
    Stamp,
    WantedContent,
    release_source,
    renew_source,
    replace_rows,
    reserve_source,
    settle_source,
    stamp_source,
)
from fencerow.guards.replace.user_table import Known, Rows, UserTable

log = logging.getLogger("fencerow.once")

VERSION_MAX = 2**63 - 1


class Replacing:
    """One caller's replacement of the rows of one source. Made by `replace_for`; one use each.

    `needed`: the rows are to be computed and inserted; else nothing is to be done, and `found` says why.
    """

    def __init__(
        self, place: Locator, table: UserTable, source: object, wanted: WantedContent, *, wait_s: float
    ) -> None:
        self._place = place
        self._table = table
        self._source = source
        self._wanted = wanted
        self._wait_s = wait_s
        self._answer: Reservation | None = None
        self._columns: frozenset[str] = frozenset()  # none before it was entered
        self._attempt = running.get()
        self._tries = 0
        self._written = False
        self._written_on: object | None = None  # whose open transaction has the rows
        self._written_plainly = False  # by a sync verb

    # --- what was found ----------------------------------------------------------------------------

    @property
    def needed(self) -> bool:
        """Whether the rows are this caller's to compute."""
        return self.found is Found.NEEDED

    @property
    def found(self) -> Found:
        """NEEDED, UNCHANGED (this content is written already) or OUTDATED (a newer one is)."""
        return self._entered().found

    @property
    def written(self) -> bool:
        """Whether this caller has written the rows; on a connection of the caller's they count once it commits."""
        return self._written

    # --- writing -----------------------------------------------------------------------------------

    def insert(self, rows: Iterable[Mapping[str, Any]], *, connection: object | None = None) -> bool:
        """Replace all rows of the source by these, in one transaction: readers see the old ones or the new.

        With `connection` it is part of the transaction that is open there. False: a newer content was written
        meanwhile, and nothing was changed. Each row maps columns to values, all rows the same ones; the source
        column is filled in.

        Raises:
            OnceMisuse: there are no rows (`clear` says that it is meant), or they do not fit together.
            SourceConflict: the version was written with another content meanwhile.
            UnusableTable: the table lacks a column of theirs. LeaseLost: stop working on the job.
        """
        return self._settled(
            run(self._place, self._replacing(list(rows), connection), connection), connection, plainly=True
        )

    async def ainsert(self, rows: Iterable[Mapping[str, Any]], *, connection: object | None = None) -> bool:
        """`insert` for async code."""
        return self._settled(
            await arun(self._place, self._replacing(list(rows), connection), connection), connection
        )

    def clear(self, *, connection: object | None = None) -> bool:
        """Remove all rows of the source. It is remembered, so that an older version does not bring them back."""
        return self._settled(
            run(self._place, self._writing(Rows((), ()), connection), connection), connection, plainly=True
        )

    async def aclear(self, *, connection: object | None = None) -> bool:
        """`clear` for async code."""
        return self._settled(
            await arun(self._place, self._writing(Rows((), ()), connection), connection), connection
        )

    def take(self, *, connection: object) -> bool:
        """Lock the source in the transaction that is open on `connection`, for rows that the caller writes by itself.

        True: delete and insert now, in this transaction. False: a newer content was written meanwhile; leave it.

        Raises:
            UnusableConnection: it has no transaction open, or cannot be used.
        """
        stamping = stamp_source(self._mine(), self._number(), self._attempt_on(connection))
        stamp = run(self._place, stamping, connection)
        return self._settled(stamp, connection, repeated=False, plainly=True)

    async def atake(self, *, connection: object) -> bool:
        """`take` for async code."""
        stamping = stamp_source(self._mine(), self._number(), self._attempt_on(connection))
        return self._settled(await arun(self._place, stamping, connection), connection, repeated=False)

    def renew(self) -> bool:
        """Let the reservation end `stale_s` from now; false: another computes this source now, for good or ill."""
        return run(self._place, renew_source(self._mine()))

    async def arenew(self) -> bool:
        """`renew` for async code."""
        return await arun(self._place, renew_source(self._mine()))

    # --- as a context manager ----------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._check_unused()
        check_tables(self._place)
        self._settle(*run(self._place, settle_source(self._wanted, self._look())))
        until, pause = time.monotonic() + self._wait_s, pauses()
        while True:
            answer, self._columns = run(self._place, self._reserving())
            if answer.found is not Found.BUSY:
                self._answer = answer
                return self
            time.sleep(self._patience(answer, until, next(pause)))

    async def __aenter__(self) -> Self:
        self._check_unused()
        await acheck_tables(self._place)
        self._settle(*await arun(self._place, settle_source(self._wanted, self._look())))
        until, pause = time.monotonic() + self._wait_s, pauses()
        while True:
            answer, self._columns = await arun(self._place, self._reserving())
            if answer.found is not Found.BUSY:
                self._answer = answer
                return self
            await asyncio.sleep(self._patience(answer, until, next(pause)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._holds(error):
            return
        try:
            run(self._place, release_source(self._wanted), self._free_via())
        except FencerowError as second:
            self._note(error, second)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._holds(error):
            return
        try:
            releasing = release_source(self._wanted)
            await arun_back(self._place, releasing, self._free_via(), plainly=self._written_plainly)
        except FencerowError as second:
            self._note(error, second)

    # --- inside ------------------------------------------------------------------------------------

    def _look(self) -> Callable[[], Steps[Known]]:
        return partial(self._table.known, self._place.engine.dialect)

    def _settle(self, wanted: WantedContent, known: Known) -> None:
        self._wanted = wanted
        self._table = dataclasses.replace(self._table, source_type=known.source_type)
        if known.source_type is not None or isinstance(self._source, UUID):
            self._source = wanted.source

    def _reserving(self) -> Operation[tuple[Reservation, frozenset[str]]]:
        look = partial(self._table.columns, self._place.engine.dialect)
        return reserve_source(self._wanted, self._attempt, look)

    def _replacing(self, rows: list[Mapping[str, Any]], connection: object | None) -> Operation[Stamp]:
        if not rows:
            raise OnceMisuse(
                f"there are no rows to insert for source {self._wanted.source!r}",
                "an empty list is more often a failure to read than a source without content",
                "call clear() where it is meant",
            )
        return self._writing(Rows.of(self._table, self._source, rows, self._columns), connection)

    def _writing(self, rows: Rows, connection: object | None) -> Operation[Stamp]:
        write = partial(self._table.replaced, self._place.engine.queries, self._source, rows)
        return replace_rows(
            self._mine(),
            self._number(),
            self._attempt_on(connection),
            row_count=len(rows.values),
            write=write,
        )

    def _attempt_on(self, connection: object | None) -> Running | None:
        return None if self._attempt is None else self._attempt.on(connection)

    def _settled(
        self, stamp: Stamp, connection: object | None, *, repeated: bool = True, plainly: bool = False
    ) -> bool:
        self._tries += 1
        if stamp is Stamp.REPEATED and self._tries > 1:
            raise OnceMisuse(
                f"the rows of source {self._wanted.source!r} were replaced already",
                "one use replaces them once",
                "pass all rows at once",
            )
        self._written = stamp is Stamp.FRESH or (stamp is Stamp.REPEATED and repeated)
        self._written_on = connection if self._written else None
        self._written_plainly = plainly
        return self._written

    def _mine(self) -> WantedContent:
        if not self.needed:
            raise OnceMisuse(
                f"the rows of source {self._wanted.source!r} are not this caller's to write",
                self.found.value,
                "write only where `needed` is true",
            )
        return self._wanted

    def _number(self) -> int:
        return self._entered().number

    def _entered(self) -> Reservation:
        if self._answer is None:
            raise OnceMisuse(
                "this replacement was not begun", "it begins with `with`", "use it in `with` or `async with`"
            )
        return self._answer

    def _check_unused(self) -> None:
        if self._answer is not None:
            raise OnceMisuse(
                "this replacement was used already", "one is one use", "call replace_for() again"
            )

    def _patience(self, answer: Reservation, until: float, pause_s: float) -> float:
        """How long to wait before the next look at what another computes."""
        left_s = until - time.monotonic()
        if left_s > 0:
            return min(pause_s, left_s)
        raise SourceBusy(
            f"the rows of source {self._wanted.source!r} in {self._table.name!r} are being computed by {answer.owner}",
            f"it did not finish within {self._wait_s:g} s",
            "try again later; if it crashed, its reservation ends by itself",
            owner=answer.owner,
        )

    def _holds(self, error: BaseException | None) -> bool:
        """Whether a reservation of ours may stand there: it was not written, or what wrote it may be undone."""
        may_stand = error is not None or not self._written or self._written_on is not None
        return self._answer is not None and self.needed and may_stand

    def _free_via(self) -> object | None:
        """Where it is given back: in the caller's transaction while it is open, which may hold the row locked."""
        if self._written_on is not None and still_open(self._place, self._written_on):
            return self._written_on
        return None

    def _note(self, error: BaseException | None, second: FencerowError) -> None:
        if error is None and self._written:
            log.warning(
                "whether the rows of source %r were committed was not found out; if not, it is free when its "
                "reservation ends: %s",
                self._wanted.source,
                second,
            )
            return
        if error is None:
            raise second
        error.add_note(f"the reservation could not be given back, it ends by itself: {second}")


def replace_for(
    place: Locator,
    *,
    table: str,
    source_column: str,
    source: object,
    version: int | None = None,
    content_hash: str | None = None,
    owner: str | None = None,
    attempt: int | None = None,
    stale_s: float = 300.0,
    wait_s: float = 30.0,
) -> Replacing:
    """Replace the rows of one source in a table of yours, as a whole, once per content.

        with replace_for(app, table="chunks", source_column="source_id", source=7, content_hash=h) as replacing:
            if replacing.needed:
                replacing.insert(embed(text))

    No transaction is open in the block: at its start a short one finds out whether this content is written already
    (then nothing is to be done), is outdated, or is being computed by another (then it waits up to `wait_s` for
    that), and reserves it for this caller. A caller that dies loses the reservation after `stale_s`, by the
    database's clock; a later attempt of the same owner, such as the same job, takes it up at once. Outside of jobs
    that is `owner` with `attempt`, a number that each later run raises.

    The greater `version` wins, whoever finishes last. Without versions the later reservation does. At least one
    of `version` and `content_hash` is needed; what the rows depend on besides the content, such as the model
    that computes them, belongs into the hash.

    Raises:
        InvalidInput: an argument cannot be used.
        SourceBusy: when the block is entered: another computes the same or newer rows, and did not end in time. Try
            again later.
        SourceConflict: when the block is entered: this version is written with another content, or a version is
            missing.
        UnusableTable: when the block is entered: there is no such table or column.
    """
    if version is None and content_hash is None:
        raise InvalidInput(
            "neither version nor content_hash was given",
            "they tell what is new and what is newer",
            "give at least one of them",
        )
    if version is not None:
        _check_version(version)
    known = UserTable(table, source_column)
    worker = owner_now(owner, attempt)
    wanted = WantedContent(
        target=table,
        source=check_key(_text(source), "the source"),
        version=version,
        content_hash=None if content_hash is None else check_key(content_hash, "content_hash"),
        owner=worker.name,
        attempt=worker.attempt,
        token=new_id(),
        stale_s=check_seconds(stale_s, "stale_s", STALE_S_MIN),
    )
    return Replacing(place, known, source, wanted, wait_s=check_seconds(wait_s, "wait_s", 0.0))


def forget_source(place: Locator, *, table: str, source: object, connection: object | None = None) -> bool:
    """Forget what is known of a source, for one that is gone for good; its rows are the caller's to remove."""
    check_tables(place)
    look = partial(UserTable(table, "source").looked_up, place.engine.dialect)
    return run(place, sources.forget_source(table, check_key(_text(source), "the source"), look), connection)


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or abs(version) > VERSION_MAX:
        raise InvalidInput(
            f"version is {version!r}", "it is a whole number of 64 bits", "correct the version"
        )


def _text(source: object) -> str:
    if source is None or isinstance(source, (bool, float, bytes, list, dict, tuple)):
        raise InvalidInput(
            f"the source is of type {type(source).__name__}",
            "it is text, a whole number or a UUID",
            "pass the value that stands in the source column",
        )
    return str(source)
