"""What is to be done for a content, by what is known of its source: decided from records alone, and pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fencerow.guards.once.errors import SourceConflict


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
    """What `replace_for` has found out about a content."""

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


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source as its row tells of it: what is written of it, and who has reserved what."""

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


def decided(known: KnownSource | None, wanted: WantedContent) -> Reservation:
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


def _is_written(known: KnownSource, wanted: WantedContent) -> bool:
    return (
        known.written_number > 0
        and wanted.content_hash is not None
        and known.content_hash == wanted.content_hash
    )


def _is_left_to(known: KnownSource, wanted: WantedContent) -> bool:
    """Whether who reserved it was an older attempt of the same owner, or an earlier try of this very call."""
    if known.token == wanted.token:
        return True
    if known.owner != wanted.owner or known.attempt is None or wanted.attempt is None:
        return False
    return known.attempt < wanted.attempt


def _is_underway(known: KnownSource, wanted: WantedContent) -> bool:
    """Whether what somebody computes is the same content, or a newer one."""
    if wanted.content_hash is not None and known.reserved_hash == wanted.content_hash:
        return True
    return (
        wanted.version is not None
        and known.reserved_version is not None
        and known.reserved_version >= wanted.version
    )


def is_behind(known: KnownSource | None, wanted: WantedContent) -> bool:
    """Whether the same content was written for an older version, or others have begun since: then it is confirmed."""
    assert known is not None, "nothing is written of it"
    if wanted.version is not None:
        return known.version is None or known.version < wanted.version
    return known.number > known.written_number


def is_newer(known: KnownSource, wanted: WantedContent, number: int) -> bool:
    """The guard of the stamp, once more: whether it would let this pass now."""
    if wanted.version is not None:
        return known.version is None or known.version < wanted.version
    return known.version is None and known.written_number < number


def _without_version(known: KnownSource, wanted: WantedContent) -> SourceConflict:
    return SourceConflict(
        f"source {wanted.source!r} in {wanted.target!r} came without a version",
        f"version {known.version} of it is written, and only a version tells what is newer",
        "give the version each time, or forget_source() it first",
    )


def _two_contents(known: KnownSource, wanted: WantedContent) -> SourceConflict:
    return SourceConflict(
        f"version {wanted.version} of source {wanted.source!r} in {wanted.target!r} is written with another content",
        f"its hash is {str(known.content_hash)[:16]}, this one's is {str(wanted.content_hash)[:16]}",
        "raise the version with each change of the content",
    )
