"""The operations behind `replace_for`: what of a source is written, who computes the next, and writing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from fencerow.core.db.run import Param, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.core.errors import Busy
from fencerow.core.store.running import Running
from fencerow.guards.checked import hold_attempt
from fencerow.guards.once.errors import SourceConflict
from fencerow.guards.replace.user_table import Known

ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class WantedContent:
    """The content that a caller has for a source, and who computes its rows. `token` is this very reservation's.

    `attempt` tells a later run of the owner from one that may be at work still; None: no later run is known.
    """

    target: str
    source: str
    version: int | None
    content_hash: str | None
    owner: str
    attempt: int | None
    token: str
    stale_s: float


class Found(Enum):
    """What is to be done for a content."""

    NEEDED = "its rows are to be computed and written"
    UNCHANGED = "this content is written already"
    OUTDATED = "a newer one is written"
    BUSY = "somebody else computes the same or a newer one"


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a reservation came to. `number` orders the contents without a version."""

    found: Found
    number: int = 0
    owner: str = ""


class Stamp(Enum):
    """What came of saying that one's rows are the newest."""

    FRESH = "the source's row is locked, and the rows are to be written now"
    REPEATED = "it was said and committed before: the answer was lost"
    REFUSED = "what is written is as new or newer"


@dataclass(frozen=True, slots=True)
class _Source:
    number: int
    version: int | None
    content_hash: str | None
    written_number: int
    written_by: str | None
    owner: str
    attempt: int | None
    token: str | None
    reserved: bool
    reserved_version: int | None
    reserved_hash: str | None


@operation(repeatable=True)
def settle_source(
    wanted: WantedContent, look: Callable[[], Steps[Known]]
) -> Steps[tuple[WantedContent, Known]]:
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
    """Find out whether a content must be computed, and say that it is this caller who does it.

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
        answer = _judged(known, wanted)
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
        is_behind = answer.found is Found.UNCHANGED and _is_behind(known, wanted)
        if not is_behind or (yield from _confirmed(wanted)):
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
    target: str, source: str, look: Callable[[], Steps[Known | None]] | None = None
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
        if known is None or _is_newer(known, wanted, number):
            continue  # it was not when it was refused
        if known.written_by == wanted.token:
            return Stamp.REPEATED
        _judged(known, wanted)  # refuses what cannot be right
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


def _read(wanted: WantedContent) -> Steps[_Source | None]:
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
    return _Source(
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


def _judged(known: _Source | None, wanted: WantedContent) -> Reservation:
    """What is to be done by what was found.

    Raises:
        SourceConflict: what is wanted contradicts what was found.
    """
    if known is None:
        return Reservation(Found.NEEDED)
    same = _is_written(known, wanted)
    if known.version is not None:
        if wanted.version is None:
            raise _without_version(known, wanted)
        if wanted.version < known.version:
            return Reservation(Found.OUTDATED)
        if wanted.version == known.version and not same:
            if wanted.content_hash is not None and known.content_hash is not None:
                raise _two_contents(known, wanted)
            return Reservation(Found.UNCHANGED)
    if same:
        return Reservation(Found.UNCHANGED)
    if known.reserved and not _is_left_to(known, wanted) and _is_underway(known, wanted):
        return Reservation(Found.BUSY, owner=known.owner)
    return Reservation(Found.NEEDED)


def _is_written(known: _Source, wanted: WantedContent) -> bool:
    return (
        known.written_number > 0
        and wanted.content_hash is not None
        and known.content_hash == wanted.content_hash
    )


def _is_left_to(known: _Source, wanted: WantedContent) -> bool:
    """Whether who reserved it was an older attempt of the same owner, or an earlier try of this very call."""
    if known.token == wanted.token:
        return True
    if known.owner != wanted.owner or known.attempt is None or wanted.attempt is None:
        return False
    return known.attempt < wanted.attempt


def _is_underway(known: _Source, wanted: WantedContent) -> bool:
    """Whether what somebody computes is the same content, or a newer one."""
    if wanted.content_hash is not None and known.reserved_hash == wanted.content_hash:
        return True
    return (
        wanted.version is not None
        and known.reserved_version is not None
        and known.reserved_version >= wanted.version
    )


def _is_behind(known: _Source | None, wanted: WantedContent) -> bool:
    """Whether the same content was written for an older version, or others have begun since: then it is confirmed."""
    assert known is not None, "nothing is written of it"
    if wanted.version is not None:
        return known.version is None or known.version < wanted.version
    return known.number > known.written_number


def _is_newer(known: _Source, wanted: WantedContent, number: int) -> bool:
    """The guard of the stamp, once more: whether it would let this pass now."""
    if wanted.version is not None:
        return known.version is None or known.version < wanted.version
    return known.version is None and known.written_number < number


def _content(wanted: WantedContent) -> dict[str, Param]:
    return {
        "target": wanted.target,
        "source": wanted.source,
        "token": wanted.token,
        "version": wanted.version,
        "content_hash": wanted.content_hash,
    }


def _without_version(known: _Source, wanted: WantedContent) -> SourceConflict:
    return SourceConflict(
        f"source {wanted.source!r} in {wanted.target!r} came without a version",
        f"version {known.version} of it is written, and only a version tells what is newer",
        "give the version each time, or forget_source() it first",
    )


def _two_contents(known: _Source, wanted: WantedContent) -> SourceConflict:
    return SourceConflict(
        f"version {wanted.version} of source {wanted.source!r} in {wanted.target!r} is written with another content",
        f"its hash is {str(known.content_hash)[:16]}, this one's is {str(wanted.content_hash)[:16]}",
        "raise the version with each change of the content",
    )


def _restless(wanted: WantedContent) -> Busy:
    return Busy(
        f"source {wanted.source!r} in {wanted.target!r} changed too often to be settled",
        f"{ROUNDS_MAX} rounds were lost to others",
        "try again",
    )
