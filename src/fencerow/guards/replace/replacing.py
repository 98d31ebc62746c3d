"""One use of `replace_for`: from the reservation of a content, over writing its rows, to giving it back."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from fencerow.core.errors import FencerowError
from fencerow.core.locator import Locator
from fencerow.core.store.running import Running, running
from fencerow.core.verb import averb, verb
from fencerow.db.run import Operation, Pause, Steps
from fencerow.db.strikes import sheltered
from fencerow.guards.lent import arun_back, still_open
from fencerow.guards.once.errors import OnceMisuse, SourceBusy
from fencerow.guards.pauses import pauses
from fencerow.guards.replace.deciding import Found, Reservation, WantedContent
from fencerow.guards.replace.sources import (
    Stamp,
    release_source,
    renew_source,
    replace_rows,
    reserve_source,
    settle_source,
    stamp_source,
)
from fencerow.guards.replace.user_table import KnownTable, Rows, UserTable
from fencerow.located import CheckTables, LocatorProcedure, LocatorVerbs, run

log = logging.getLogger("fencerow.once")


class Replacing(LocatorVerbs):
    """One caller's replacement of the rows of one source. Made by `replace_for`; one use each.

    `needed`: compute the rows and insert them; else there is nothing to do, and `found` says why.
    """

    def __init__(
        self, place: Locator, table: UserTable, source: object, wanted: WantedContent, *, wait_s: float
    ) -> None:
        super().__init__(place)
        self._table = table
        self._source = source
        self._wanted = wanted
        self._wait_s = wait_s
        self._reservation: Reservation | None = None
        self._columns: frozenset[str] = frozenset()  # none before it was entered
        self._attempt = running.get()
        self._tries = 0
        self._written = False
        self._written_on: object | None = None  # whose open transaction has the rows

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

    @verb
    def insert(
        self, rows: Iterable[Mapping[str, Any]], *, connection: object | None = None
    ) -> LocatorProcedure[bool]:
        """Replace all rows of the source by these, in one transaction: readers see the old ones or the new.

        With `connection` it is part of the transaction that is open there. False: a newer content was written
        meanwhile, and nothing was changed. Each row maps columns to values. All rows have the same columns;
        the source column is filled in.

        Raises:
            OnceMisuse: there are no rows (call `clear` if you mean that), or they do not fit together.
            SourceConflict: the version was written with another content meanwhile.
            UnusableTable: the table lacks a column of theirs. LeaseLost: stop working on the job.
        """
        stamp: Stamp = yield self._replacing(list(rows), connection)
        return self._settled(stamp, connection)

    ainsert = averb(insert)

    @verb
    def clear(self, *, connection: object | None = None) -> LocatorProcedure[bool]:
        """Remove all rows of the source. It is remembered, so that an older version does not bring them back."""
        stamp: Stamp = yield self._writing(Rows((), ()), connection)
        return self._settled(stamp, connection)

    aclear = averb(clear)

    @verb
    def take(self, *, connection: object) -> LocatorProcedure[bool]:
        """Lock the source in the transaction that is open on `connection`, so that you can write the rows yourself.

        True: delete and insert now, in this transaction. False: a newer content was written meanwhile; leave it.

        Raises:
            UnusableConnection: it has no transaction open, or cannot be used.
        """
        stamp: Stamp = yield stamp_source(self._mine(), self._number(), self._attempt_on(connection))
        return self._settled(stamp, connection, repeated=False)

    atake = averb(take)

    @verb
    def renew(self) -> LocatorProcedure[bool]:
        """Extend the reservation to `stale_s` from now; false: somebody else computes this source now."""
        return (yield renew_source(self._mine()))  # type: ignore[no-any-return]

    arenew = averb(renew)

    # --- as a context manager ----------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._run(self._entering())
        return self

    async def __aenter__(self) -> Self:
        await self._arun(self._entering())
        return self

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
            await arun_back(self._place, releasing, self._free_via())
        except FencerowError as second:
            self._note(error, second)

    # --- inside ------------------------------------------------------------------------------------

    def _entering(self) -> LocatorProcedure[None]:
        self._check_unused()
        yield CheckTables()
        wanted, known = yield settle_source(self._wanted, self._look())
        self._settle(wanted, known)
        until, pause = time.monotonic() + self._wait_s, pauses()
        while True:
            reservation, self._columns = yield self._reserving()
            if reservation.found is not Found.BUSY:
                self._reservation = reservation
                return
            yield Pause(self._patience(reservation, until, next(pause)))

    def _look(self) -> Callable[[], Steps[KnownTable]]:
        return partial(self._table.known, self._place.engine.dialect)

    def _settle(self, wanted: WantedContent, known: KnownTable) -> None:
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
                "call clear() if you mean that",
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

    def _settled(self, stamp: Stamp, connection: object | None, *, repeated: bool = True) -> bool:
        self._tries += 1
        if stamp is Stamp.REPEATED and self._tries > 1:
            raise OnceMisuse(
                f"the rows of source {self._wanted.source!r} were replaced already",
                "an object replaces them once",
                "pass all rows at once",
            )
        self._written = stamp is Stamp.FRESH or (stamp is Stamp.REPEATED and repeated)
        self._written_on = connection if self._written else None
        return self._written

    def _mine(self) -> WantedContent:
        if not self.needed:
            raise OnceMisuse(
                f"the rows of source {self._wanted.source!r} do not belong to this caller",
                self.found.value,
                "write only where `needed` is true",
            )
        return self._wanted

    def _number(self) -> int:
        return self._entered().number

    def _entered(self) -> Reservation:
        if self._reservation is None:
            raise OnceMisuse(
                "this replacement has not started", "`with` starts it", "use it in `with` or `async with`"
            )
        return self._reservation

    def _check_unused(self) -> None:
        if self._reservation is not None:
            raise OnceMisuse(
                "this replacement was used already", "an object is for one use", "call replace_for() again"
            )

    def _patience(self, reservation: Reservation, until: float, pause_s: float) -> float:
        """How long to wait before the next look at what another computes."""
        left_s = until - time.monotonic()
        if left_s > 0:
            return min(pause_s, left_s)
        raise SourceBusy(
            f"the rows of source {self._wanted.source!r} in {self._table.name!r} "
            f"are being computed by {reservation.owner}",
            f"it did not finish within {self._wait_s:g} s",
            "try again later; if it crashed, its reservation ends by itself",
            owner=reservation.owner,
        )

    def _holds(self, error: BaseException | None) -> bool:
        """Whether a reservation of ours may stand there: it was not written, or what wrote it may be undone."""
        may_stand = error is not None or not self._written or self._written_on is not None
        return self._reservation is not None and self.needed and may_stand

    def _free_via(self) -> object | None:
        """Where it is given back: in the caller's transaction while it is open, which may hold the row locked."""
        if self._written_on is not None and still_open(self._place, self._written_on):
            return self._written_on
        return None

    @sheltered  # a handler of the log has a lock
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
        error.add_note(f"the reservation could not be released; it ends by itself: {second}")
