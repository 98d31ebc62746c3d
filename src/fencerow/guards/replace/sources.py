"""The operations behind `replace_for`: what of a source is written, who computes the next, and writing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from fencerow.core.errors import Busy
from fencerow.core.store.running import Running
from fencerow.db.run import Param, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.guards.checked import hold_attempt
from fencerow.guards.replace.deciding import (
    Found,
    KnownSource,
    Reservation,
    WantedContent,
    decided,
    is_behind,
    is_newer,
)
from fencerow.guards.replace.user_table import KnownTable

ROUNDS_MAX = 20


class Stamp(Enum):
    """What came of saying that one's rows are the newest."""

    FRESH = "the source's row is locked, and the rows are to be written now"
    REPEATED = "it was said and committed before: the answer was lost"
    REFUSED = "what is written is as new or newer"


@operation(repeatable=True)
def settle_source(
    wanted: WantedContent, look: Callable[[], Steps[KnownTable]]
) -> Steps[tuple[WantedContent, KnownTable]]:
    """Before anything else: how the table and the source are spelled, so that one source is known by one name.

    Raises:
        UnusableTable: there is no such table. InvalidInput: its column cannot hold such a source.
    """
    known = yield from look()
    settled = replace(wanted, target=known.spelling, source=known.spelled(wanted.source))
    if (settled.target, settled.source) != (wanted.target, wanted.source):
        yield from execute(
            "respell_source",
            target=settled.target,
            source=settled.source,
            old_target=wanted.target,
            old_source=wanted.source,
        )
    return settled, known


@operation(repeatable=True)
def reserve_source(
    wanted: WantedContent, attempt: Running | None, look: Callable[[], Steps[frozenset[str]]]
) -> Steps[tuple[Reservation, frozenset[str]]]:
    """Find out whether a content must be computed, and say that this caller has to do the effect.

    A short transaction of its own, before anything is asked of a provider. `look` is asked for the columns of the
    user's table before a reservation, so that what cannot be written is not computed.

    Raises:
        SourceConflict: the version has another content, or a version is missing.
        UnusableTable: the rows could not be written. LeaseLost: the attempt no longer holds its job.
    """
    yield from hold_attempt(attempt)
    columns: frozenset[str] = frozenset()
    for _ in range(ROUNDS_MAX):
        known = yield from _read(wanted)
        answer = decided(known, wanted)
        if answer.found is Found.NEEDED:
            columns = columns or (yield from look())
            rows = yield from execute(
                "reserve_source",
                _content(wanted),
                owner=wanted.owner,
                attempt=wanted.attempt,
                stale_s=wanted.stale_s,
            )
            if rows:
                return Reservation(Found.NEEDED, as_int(rows[0][0]), wanted.owner), columns
            continue
        behind = answer.found is Found.UNCHANGED and is_behind(known, wanted)
        if not behind or (yield from _confirmed(wanted)):
            return answer, columns
    raise _restless(wanted)


@operation(repeatable=True)
def replace_rows(
    wanted: WantedContent,
    number: int,
    attempt: Running | None,
    *,
    row_count: int,
    write: Callable[[], Steps[None]],
) -> Steps[Stamp]:
    """Write the rows of a source in one transaction: stamp, delete, insert.

    May be repeated. It locks the source's row first, so replacements of one source come one after the other, and
    a reader sees the rows of one of them.
    """
    stamp = yield from _stamped(wanted, number, attempt, row_count)
    if stamp is Stamp.FRESH:
        yield from write()
    return stamp


@operation(repeatable=True, inside=True)
def stamp_source(wanted: WantedContent, number: int, attempt: Running | None) -> Steps[Stamp]:
    """The first part of `replace_rows`, in a transaction in which the caller then writes the rows."""
    return (yield from _stamped(wanted, number, attempt, None))


@operation(alone=True, repeatable=True)
def renew_source(wanted: WantedContent) -> Steps[bool]:
    """Move the end of the reservation; false means that another has reserved since."""
    rows = yield from execute(
        "renew_source",
        target=wanted.target,
        source=wanted.source,
        token=wanted.token,
        stale_s=wanted.stale_s,
    )
    return bool(rows)


@operation(alone=True, repeatable=True, patience_s=1.0)
def release_source(wanted: WantedContent) -> Steps[bool]:
    """Give the reservation back; it hardly waits, as who holds the row may be a transaction of the caller's own."""
    rows = yield from execute(
        "release_source", target=wanted.target, source=wanted.source, token=wanted.token
    )
    return bool(rows)


@operation(repeatable=True)
def forget_source(
    target: str, source: str, look: Callable[[], Steps[KnownTable | None]] | None = None
) -> Steps[bool]:
    """Forget a source altogether, however its table is spelled; false means that nothing was known of it."""
    known = None if look is None else (yield from look())
    forgotten = False
    for name in sorted({target} if known is None else {target, known.spelling}):
        forgotten |= bool((yield from execute("forget_source", target=name, source=source)))
    return forgotten


@operation(alone=True)
def purge_sources(*, age_s: float, limit: int) -> Steps[int]:
    """Forget sources that were emptied, or reserved and never written, longer ago than this; returns how many."""
    return len((yield from execute("purge_sources", age_s=age_s, limit=limit)))


def _stamped(
    wanted: WantedContent, number: int, attempt: Running | None, row_count: int | None
) -> Steps[Stamp]:
    yield from hold_attempt(attempt)
    for _ in range(ROUNDS_MAX):
        if (yield from execute("stamp_source", _content(wanted), number=number, row_count=row_count)):
            return Stamp.FRESH
        known = yield from _read(wanted)
        if known is None or is_newer(known, wanted, number):
            continue  # it was not when it was refused
        if known.written_by == wanted.token:
            return Stamp.REPEATED
        decided(known, wanted)  # refuses what cannot be right
        return Stamp.REFUSED
    raise _restless(wanted)


def _confirmed(wanted: WantedContent) -> Steps[bool]:
    """The content stands there already; what was begun before this must not overwrite it."""
    rows = yield from execute(
        "confirm_source",
        target=wanted.target,
        source=wanted.source,
        version=wanted.version,
        content_hash=wanted.content_hash,
    )
    return bool(rows)


def _read(wanted: WantedContent) -> Steps[KnownSource | None]:
    rows = yield from execute("read_source", target=wanted.target, source=wanted.source)
    if not rows:
        return None
    (
        number,
        version,
        content_hash,
        written_number,
        written_by,
        owner,
        attempt,
        token,
        reserved_version,
        reserved_hash,
        reserved,
    ) = rows[0]
    return KnownSource(
        as_int(number),
        as_int_or_none(version),
        text_or_none(content_hash),
        as_int(written_number),
        text_or_none(written_by),
        str(owner),
        as_int_or_none(attempt),
        text_or_none(token),
        bool(reserved),
        as_int_or_none(reserved_version),
        text_or_none(reserved_hash),
    )


def _content(wanted: WantedContent) -> dict[str, Param]:
    return {
        "target": wanted.target,
        "source": wanted.source,
        "token": wanted.token,
        "version": wanted.version,
        "content_hash": wanted.content_hash,
    }


def _restless(wanted: WantedContent) -> Busy:
    return Busy(
        f"source {wanted.source!r} in {wanted.target!r} changed too often",
        f"{ROUNDS_MAX} rounds were lost to others",
        "try again",
    )
