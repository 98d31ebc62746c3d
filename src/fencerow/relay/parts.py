"""The operations on what comes in: who reads which part, and what is stored with the move of its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.submission import Submission
from fencerow.core.store.storing import once_each, storing_once
from fencerow.db.run import Param, Row, Steps, as_int, execute, operation
from fencerow.events.outbox import NewEvent, append
from fencerow.relay.errors import RelayPartLost


@dataclass(frozen=True, slots=True)
class PartLease:
    """A part that this process reads: `fence` is what its writes name."""

    relay: str
    part: int
    holder: str
    fence: int
    position: str
    generation: int
    stopped: bool = False

    @property
    def named(self) -> dict[str, Param]:
        """What every guarded statement is given."""
        return {"relay": self.relay, "part": self.part, "holder": self.holder, "fence": self.fence}


@dataclass(frozen=True, slots=True)
class HeldParts:
    """What a process holds after a look, how many parts it should give back to others, and how many are known."""

    leases: tuple[PartLease, ...]
    surplus: int
    known: int


class Unread(msgspec.Struct, frozen=True):
    """A message that could not be read. `raw`: base64 of its first bytes, of `bytes`."""

    position: str
    key: str | None
    headers: str | None
    raw: str
    bytes: int
    error: str


@dataclass(frozen=True, slots=True)
class Intake:
    """What some messages in a row come to. It is stored as a whole, with the position behind them."""

    position: str
    count: int
    submissions: Sequence[Submission] = ()
    events: Sequence[NewEvent] = ()
    unread: Sequence[Unread] = ()
    lag: int | None = None


@operation(repeatable=True)
def make_parts(relay: str, parts: int) -> Steps[int]:
    """Make the parts known that the broker has; returns how many are new. May be repeated."""
    return len((yield from execute("make_relay_parts", relay=relay, parts=parts)))


@operation(repeatable=True)
def hold_parts(relay: str, *, holder: str) -> Steps[HeldParts]:
    """Take a fair share of what nobody alive reads. The process has said before that it is alive. May be repeated."""
    live = max(1, as_int((yield from execute("live_relay_readers", relay=relay))[0][0]))
    rows = yield from execute("read_relay_parts", relay=relay)
    share = -(-len(rows) // live)
    mine = [_lease(relay, holder, row) for row in rows if row[4] == holder]
    if len(mine) < share:
        # Dead ones are named by value: one that has come since is not among them.
        dead = sorted({str(row[4]) for row in rows if row[4] is not None and not row[5] and row[4] != holder})
        count = share - len(mine)
        taken = yield from execute("take_relay_parts", relay=relay, holder=holder, dead=dead, count=count)
        mine += [
            PartLease(
                relay,
                as_int(part),
                holder,
                as_int(fence),
                str(position),
                as_int(generation),
                stopped is not None,
            )
            for part, position, generation, fence, stopped in taken
        ]
    return HeldParts(tuple(sorted(mine, key=lambda each: each.part)), max(0, len(mine) - share), len(rows))


@operation(repeatable=True)
def give_parts(relay: str, parts: Sequence[int], *, holder: str) -> Steps[None]:
    """Give parts back; others may take them at once."""
    yield from execute("give_relay_parts", relay=relay, parts=list(parts), holder=holder)


@operation()
def take(lease: PartLease, intake: Intake) -> Steps[None]:
    """Store what came in, and move the part on, in one transaction: all of it once, or nothing.

    The part is moved first, so its row is locked until the end: who was replaced writes nothing, and nobody replaces
    him in between.

    Raises:
        RelayPartLost: the part is somebody else's now, or was moved. Nothing is stored.
        KeyConflict, InvalidInput, PayloadTooLarge: one of the messages comes to what cannot be stored. Nothing is.
    """
    moved = yield from execute(
        "move_relay_part",
        {
            **lease.named,
            "old": lease.position,
            "position": intake.position,
            "taken": intake.count - len(intake.unread),
            "unread": len(intake.unread),
            "lag": intake.lag,
        },
    )
    if not moved:
        raise lost(lease)
    if intake.submissions:
        yield from storing_once(once_each(intake.submissions)).steps()
    if intake.events:
        yield from append(intake.events).steps()
    if intake.unread:
        yield from execute(
            "put_unread",
            relay=lease.relay,
            part=lease.part,
            generation=lease.generation,
            unread=msgspec.json.encode(intake.unread).decode(),
        )


@operation()
def begin(lease: PartLease, position: str, *, anew: bool, gone: int | None = None) -> Steps[int]:
    """Let the part go on at this position; returns its generation. `gone`: so many messages were lost to the broker, 0
    if it does not say how many; None: nothing is known to be lost.

    Raises:
        RelayPartLost: as `take`.
    """
    rows = yield from execute(
        "begin_relay_part",
        {
            **lease.named,
            "old": lease.position,
            "position": position,
            "anew": anew,
            "gone": gone or 0,
            "told": gone is not None,
        },
    )
    if not rows:
        raise lost(lease)
    return as_int(rows[0][0])


@operation()
def stop(lease: PartLease, reason: str) -> Steps[None]:
    """Read the part no more until somebody says where to go on.

    Raises:
        RelayPartLost: as `take`.
    """
    if not (yield from execute("stop_relay_part", {**lease.named, "old": lease.position, "reason": reason})):
        raise lost(lease)


@operation(alone=True, repeatable=True)
def note_lag(lease: PartLease, lag: int) -> Steps[None]:
    """How far the part is behind, for who looks."""
    yield from execute("note_relay_lag", {**lease.named, "lag": lag})


def lost(lease: PartLease) -> RelayPartLost:
    """What a reader is told who was replaced."""
    return RelayPartLost(
        f"this process no longer reads part {lease.part} of the relay {lease.relay}",
        "another one took it over, or somebody moved its position",
        "nothing was stored; who reads it now begins where it stands",
    )


def _lease(relay: str, holder: str, row: Row) -> PartLease:
    return PartLease(relay, as_int(row[0]), holder, as_int(row[3]), str(row[1]), as_int(row[2]), bool(row[6]))
