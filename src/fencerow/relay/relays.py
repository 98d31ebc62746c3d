"""The operations on relays themselves: known, alive, paused, moved, looked at."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from fencerow.db.run import (
    Row,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    operation,
    text_or_none,
)
from fencerow.db.text import shown
from fencerow.relay.errors import UnknownRelay


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay as the database knows it. `lag` and what follows are sums over the parts of what comes in; `gone`: what
    the broker removed before it was read."""

    name: str
    direction: str
    place: str
    paused_at_us: int | None
    reason: str | None
    readers: int
    trouble: str | None
    trouble_since_us: int | None
    lag: int | None
    taken: int
    unread: int
    gone: int
    gone_at_us: int | None
    stopped: str | None
    now_us: int

    @property
    def waits_s(self) -> float:
        """For how long its broker has been away; 0: it is not."""
        since_us = self.trouble_since_us if self.trouble is not None else None
        return 0.0 if since_us is None else max(0.0, (self.now_us - since_us) / 1e6)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what comes in: where it stands, who reads it, and what became of its messages."""

    part: int
    position: str
    generation: int
    reader: str | None
    taken: int
    unread: int
    gone: int
    gone_at_us: int | None
    lag: int | None
    stopped: str | None
    moved_at_us: int | None
    now_us: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that could not be read: its first bytes, of `bytes`, and why."""

    id: int
    relay: str
    part: int
    position: str
    key: str | None
    headers: str | None
    raw: bytes = field(repr=False)
    bytes: int
    error: str
    at_us: int
    now_us: int


@operation(alone=True, repeatable=True)
def know(relay: str, direction: str, place: str) -> Steps[None]:
    """Make a relay known. May be repeated; a pause stays."""
    yield from execute("know_relay", relay=relay, direction=direction, place=place)


@operation(alone=True, repeatable=True)
def renew(relay: str, *, holder: str, name: str, lease_s: float, trouble: str | None) -> Steps[None]:
    """Say that this process runs the relay, and what keeps it from going on. May be repeated."""
    yield from execute(
        "renew_relay_reader", relay=relay, holder=holder, name=name, lease_s=lease_s, trouble=trouble
    )


@operation(alone=True, repeatable=True)
def leave(relay: str, *, holder: str) -> Steps[None]:
    """This process runs the relay no more."""
    yield from execute("forget_relay_reader", relay=relay, holder=holder)


@operation(alone=True, repeatable=True, writes="")
def known() -> Steps[dict[str, bool]]:
    """The names of all relays, and whether each rests."""
    return {str(name): bool(rests) for name, rests in (yield from execute("known_relays"))}


@operation(alone=True, repeatable=True)
def forget_dead(*, age_s: float) -> Steps[None]:
    """Forget processes that died longer ago than this and hold nothing."""
    yield from execute("forget_dead_relay_readers", age_s=age_s)


@operation(alone=True, repeatable=True)
def purge_unread(*, age_s: float, limit: int) -> Steps[int]:
    """Forget what could not be read and is older; returns how much it was."""
    return len((yield from execute("purge_unread", age_s=age_s, limit=limit)))


# --- for people ----------------------------------------------------------------------------------


@operation(alone=True, repeatable=True, writes="")
def listed(relay: str | None = None) -> Steps[list[Relay]]:
    """All relays by name, or this one."""
    return [_relay(row) for row in (yield from execute("list_relays", relay=relay))]


@operation(repeatable=True, writes="")
def parts_of(relay: str) -> Steps[list[Part]]:
    """The parts of a relay.

    Raises:
        UnknownRelay: there is no such relay.
    """
    yield from _known(relay)
    return [_part(row) for row in (yield from execute("list_relay_parts", relay=relay))]


@operation()
def pause(relay: str, reason: str | None = None) -> Steps[bool]:
    """Let it rest; false: it rests already.

    Raises:
        UnknownRelay: there is no such relay.
    """
    yield from _known(relay)
    return bool((yield from execute("pause_relay", relay=relay, reason=reason)))


@operation()
def resume(relay: str) -> Steps[bool]:
    """Let it go on; false: it does not rest.

    Raises:
        UnknownRelay: there is no such relay.
    """
    yield from _known(relay)
    return bool((yield from execute("resume_relay", relay=relay)))


@operation()
def set_position(relay: str, part: int, position: str, *, again: bool) -> Steps[None]:
    """Let a part go on at this position. `again`: in a new generation, so that what was stored counts for nothing.

    Raises:
        UnknownRelay: there is no such relay or part.
    """
    yield from _known(relay)
    moved = yield from execute("set_relay_position", relay=relay, part=part, position=position, again=again)
    if not moved:
        raise UnknownRelay(
            f"the relay {relay} has no part {part}",
            "parts are known once a worker has asked the broker",
            f"`fencerow relay parts {relay}` lists them",
        )


@operation(alone=True, repeatable=True, writes="")
def unread(relay: str | None = None, *, limit: int) -> Steps[list[Kept]]:
    """What could not be read, the latest first."""
    return [_kept(row) for row in (yield from execute("list_unread", relay=relay, limit=limit))]


@operation()
def discard(relay: str, ids: Sequence[int] | None = None) -> Steps[int]:
    """Forget what could not be read: these, or all; returns how many."""
    return len((yield from execute("discard_unread", relay=relay, ids=None if ids is None else list(ids))))


@operation()
def remove(relay: str) -> Steps[None]:
    """Forget a relay with its positions. A worker that runs it makes it anew, at its start.

    Raises:
        UnknownRelay: there is no such relay.
    """
    yield from _known(relay)
    yield from execute("remove_relay", relay=relay)


def _known(relay: str) -> Steps[None]:
    if not (yield from execute("list_relays", relay=relay)):
        raise UnknownRelay(
            f"no relay is named {shown(relay)}",
            "a relay is known once a worker runs it",
            "`fencerow relay list` has them",
        )


def _relay(row: Row) -> Relay:
    return Relay(
        name=str(row[0]),
        direction=str(row[1]),
        place=str(row[2]),
        paused_at_us=as_int_or_none(row[3]),
        reason=text_or_none(row[4]),
        readers=as_int(row[5]),
        trouble=text_or_none(row[6]),
        trouble_since_us=as_int_or_none(row[7]),
        lag=as_int_or_none(row[8]),
        taken=as_int_or_none(row[9]) or 0,
        unread=as_int_or_none(row[10]) or 0,
        gone=as_int_or_none(row[11]) or 0,
        gone_at_us=as_int_or_none(row[12]),
        stopped=text_or_none(row[13]),
        now_us=as_int(row[14]),
    )


def _part(row: Row) -> Part:
    return Part(
        part=as_int(row[0]),
        position=str(row[1]),
        generation=as_int(row[2]),
        reader=text_or_none(row[3]),
        taken=as_int(row[4]),
        unread=as_int(row[5]),
        gone=as_int(row[6]),
        gone_at_us=as_int_or_none(row[7]),
        lag=as_int_or_none(row[8]),
        stopped=text_or_none(row[9]),
        moved_at_us=as_int_or_none(row[10]),
        now_us=as_int(row[11]),
    )


def _kept(row: Row) -> Kept:
    return Kept(
        as_int(row[0]),
        str(row[1]),
        as_int(row[2]),
        str(row[3]),
        text_or_none(row[4]),
        text_or_none(row[5]),
        base64.b64decode(str(row[6])),
        as_int(row[7]),
        str(row[8]),
        as_int(row[9]),
        as_int(row[10]),
    )
