"""Groups of readers: made, found, replayed, removed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import At, AtOrNone
from fencerow.core.store.decoding import read_or, whole_or_none
from fencerow.db.run import Row, Steps, as_int, execute, operation
from fencerow.db.text import amount
from fencerow.events.errors import GroupMismatch, UnknownGroup
from fencerow.events.sequencer import head, sequence_all
from fencerow.events.topics import check_group, check_patterns, wants_outcomes

PARTITIONS_MAX = 256
NAMES_LOOKED_AT = 1_000  # for one that may be meant
REPLAY_PATIENCE_S = 600.0  # a time is looked for event by event


@dataclass(frozen=True, slots=True)
class GroupStart:
    """Where a new group begins: after what has committed so far, at the first event, at a place or at a time."""

    at: str = "end"
    seq: int | None = None
    time_us: int | None = None

    @staticmethod
    def of(start: str | int | datetime) -> GroupStart:
        """From what a user writes: "end", "beginning", a place (its event is the first), or an aware datetime.

        Raises:
            InvalidInput: it is none of these.
        """
        if start in ("end", "beginning"):
            return GroupStart(str(start))
        if isinstance(start, int) and not isinstance(start, bool) and start >= 0:
            return GroupStart("seq", seq=start)
        if isinstance(start, datetime) and start.tzinfo is not None:
            return GroupStart("time", time_us=round(start.timestamp() * 1_000_000))
        raise InvalidInput(
            f"start is {ascii(start)[:60]}",
            'expected "end", "beginning", a position, or an aware datetime',
            "give one of them",
        )


END = GroupStart()


@dataclass(frozen=True, slots=True)
class Group:
    """A group as the database knows it. What cannot be read, because something else wrote it, reads as nothing."""

    name: str
    topics: tuple[str, ...]
    partitions: int
    generation: int
    created_at_us: int
    replayed_at_us: int | None = None
    alarmed_at_us: int | None = None

    created_at = At("created_at_us")
    replayed_at = AtOrNone("replayed_at_us")
    alarmed_at = AtOrNone("alarmed_at_us")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did: after which position the group reads on, how many partitions lost their reader, and
    its generation."""

    after: int
    partitions: int
    generation: int


@operation(repeatable=True)
def make_group(
    name: str, topics: Sequence[str], *, partitions: int = 8, start: GroupStart = END
) -> Steps[bool]:
    """Make a group known; true if it was not. One that is there keeps its place, and reads these topics from now on.

    At the "end" a group begins after everything that had committed before it was made. May be repeated.

    Raises:
        InvalidTopic: its name or a topic cannot be used.
        GroupMismatch: it is there with another number of partitions.
    """
    name, patterns = check_group(name), check_patterns(topics)
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise InvalidInput(
            f"partitions is {partitions!r}", f"a number from 1 to {PARTITIONS_MAX} is expected", ""
        )
    known = yield from _found(name)
    if known is None:
        if start.at == "end":
            # Before anything is written: its snapshots must be younger than the lock that it waits for.
            yield from sequence_all()
        after = yield from _after(start)
        made = yield from execute(
            "make_group",
            grp=name,
            topics=_text(patterns),
            partitions=partitions,
            outcomes=wants_outcomes(patterns),
        )
        if made:
            yield from execute("make_cursors", grp=name, partitions=partitions, after=after)
            return True
        known = yield from _found(name)
    if known is None or known.partitions != partitions:
        raise _mismatch(name, known, partitions)
    yield from execute("retopic_group", grp=name, topics=_text(patterns), outcomes=wants_outcomes(patterns))
    return False


@operation(alone=True, repeatable=True, writes="")
def groups(*, after: str | None = None, limit: int | None = None) -> Steps[list[Group]]:
    """All groups by name; with a limit a page of them, behind the name `after`."""
    rows = yield from execute("read_groups", grp=None, after=after, groups_max=limit)
    return [_group(row) for row in rows]


@operation(repeatable=True, writes="")
def group_named(name: str) -> Steps[Group]:
    """The group of this name.

    Raises:
        UnknownGroup: there is none; the closest names are told.
    """
    return (yield from known_group(name))


def known_group(name: str) -> Steps[Group]:
    """The same as part of other operations."""
    found = yield from _found(name)
    if found is None:
        rows = yield from execute("read_groups", grp=None, after=None, groups_max=NAMES_LOOKED_AT)
        names = [_group(row).name for row in rows]
        raise _unknown(name, names)
    return found


@operation(patience_s=REPLAY_PATIENCE_S)
def replay(name: str, start: GroupStart) -> Steps[Replayed]:
    """Let a group read again from this place or time on. Its cursors only go back; a new generation begins.

    Readers lose their partitions at once, so what they are at is delivered again. What was put aside or parked
    after that place is forgotten: it is read again from the log, as far as retention has left it there.

    Raises:
        UnknownGroup: there is no such group.
    """
    yield from known_group(name)
    yield from execute("hold_group", grp=name)
    after = yield from _after(start)
    moved = yield from execute("replay_cursors", grp=name, after=after)
    yield from execute("forget_asides", grp=name, after=after)
    generation = yield from execute("begin_generation", grp=name)
    if not generation:
        raise _unknown(name, [])
    return Replayed(after, len(moved), as_int(generation[0][0]))


@operation()
def remove_group(name: str) -> Steps[None]:
    """Forget a group: its place, what it put aside, what it parked.

    Raises:
        UnknownGroup: there is no such group.
    """
    yield from known_group(name)
    yield from execute("remove_group", grp=name)


def _after(start: GroupStart) -> Steps[int]:
    """The place after which a group begins."""
    if start.at == "beginning":
        return 0
    if start.seq is not None:
        return max(0, start.seq - 1)
    if start.time_us is not None:
        found = (yield from execute("place_at_time", from_us=start.time_us))[0][0]
        if found is not None:
            return as_int(found)
    return (yield from head())


def _found(name: str) -> Steps[Group | None]:
    rows = yield from execute("read_groups", grp=name, after=None, groups_max=None)
    return _group(rows[0]) if rows else None


def _group(row: Row) -> Group:
    return Group(
        str(row[0]),
        tuple(read_or((), list[str], str(row[1]))),
        whole_or_none(row[2]) or 0,
        whole_or_none(row[3]) or 0,
        whole_or_none(row[4]) or 0,
        whole_or_none(row[5]),
        whole_or_none(row[6]),
    )


def _text(patterns: Sequence[str]) -> str:
    return msgspec.json.encode(patterns).decode()


def _mismatch(name: str, known: Group | None, wanted: int) -> GroupMismatch:
    found = "was removed meanwhile" if known is None else f"has {amount(known.partitions, 'partition')}"
    return GroupMismatch(
        f"the group {name!r} {found}, its consumer declares {wanted}",
        "the events of a key must stay in one partition, so the number cannot change",
        "declare the number that it has, or use a new name with start=... and remove the old group",
    )


def _unknown(name: str, known: Sequence[str]) -> UnknownGroup:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return UnknownGroup(
        f"no group named {ascii(name)[:80]} reads events here",
        f"did you mean {' or '.join(close)}?"
        if close
        else f"{amount(len(known), 'group is', 'groups are')} known",
        "check the name with `fencerow events groups`; the first worker with the consumer makes the group",
    )
