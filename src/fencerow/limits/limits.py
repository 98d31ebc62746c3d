"""The operations on limits: define, change, remove, look; and the claim from a queue that has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from fencerow.core.db.run import Operation, Steps, as_int, execute, operation, text_or_none
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import Claimed, instant
from fencerow.core.worker.brought import BoundedClaim
from fencerow.limits.definition import FLEET, QUEUE, Limit
from fencerow.limits.room import LimitState, StartRoom, after_starts, room_now


class LimitRecord(msgspec.Struct, frozen=True, array_like=True):
    """A limit as it is stored. Instants are microseconds since 1970 by the database's clock.

    `revision` is raised by each change; `version` is that of the newest declaration in code, 0 if there is none.
    """

    name: str
    definition: str
    revision: int
    version: int
    set_at_us: int
    set_by: str | None
    reason: str | None
    state: str | None
    now_us: int

    @property
    def limit(self) -> Limit:
        """The definition.

        Raises:
            InvalidInput: somebody changed the row by hand, and it means nothing any more.
        """
        return Limit.of_document(self.name, self.definition, self.version)

    @property
    def memory(self) -> LimitState:
        """What is remembered of it; that of a key lies elsewhere."""
        return remembered(self.state)

    @property
    def set_at(self) -> datetime | None:
        """When it was changed last."""
        return instant(self.set_at_us)


def remembered(state: str | None) -> LimitState:
    """What is remembered; as of a new limit, if nothing is or if it cannot be read."""
    try:
        return msgspec.json.decode(state or "{}", type=LimitState)
    except msgspec.MsgspecError:
        return LimitState()


# --- defining ----------------------------------------------------------------------------------------------


@operation(alone=True, repeatable=True, writes="")
def read_limits(names: Sequence[str] | None = None) -> Steps[list[LimitRecord]]:
    """The limits of these names, or all, by name."""
    rows = yield from execute("read_limits", names=None if names is None else list(names))
    return [msgspec.json.decode(str(row[0]), type=LimitRecord) for row in rows]


class NewestDeclaration(msgspec.Struct, frozen=True):
    """What became of a declaration: whether it changed anything, and what else is declared under its version."""

    changed: bool
    version: int
    definition: str | None
    by: str | None


@operation(repeatable=True)
def declare(limit: Limit, *, actor: str | None) -> Steps[NewestDeclaration]:
    """Store what code declares, unless the same or a newer declaration is known. May be repeated."""
    document = limit.document()
    changed = yield from execute(
        "declare_limit", name=limit.name, definition=document, version=limit.version, actor=actor
    )
    if changed:
        yield from _bound(limit)
    ((version, definition, by),) = yield from execute("declared_limit", name=limit.name)
    return NewestDeclaration(bool(changed), as_int(version), text_or_none(definition), text_or_none(by))


@operation()
def define(limit: Limit, *, actor: str | None, reason: str | None) -> Steps[bool]:
    """Make a limit; false if there is one of that name."""
    document = limit.document()
    made = yield from execute(
        "define_limit", name=limit.name, definition=document, actor=actor, reason=reason
    )
    if not made:
        return False
    yield from _bound(limit)
    return True


@operation()
def redefine(limit: Limit, *, revision: int, actor: str | None, reason: str | None) -> Steps[bool]:
    """Change a limit; false if somebody else has changed it since `revision`."""
    changed = yield from execute(
        "redefine_limit",
        name=limit.name,
        definition=limit.document(),
        revision=revision,
        actor=actor,
        reason=reason,
    )
    if not changed:
        return False
    yield from _bound(limit)
    return True


@operation()
def remove(name: str, *, revision: int) -> Steps[bool]:
    """Forget a limit and what is remembered of it; false if somebody else has changed it since `revision`."""
    if not (yield from execute("remove_limit", name=name, revision=revision)):
        return False
    if (queue := queue_of(name)) is not None:
        yield from execute("limit_queue", queue=queue, limited=0)
    yield from execute("forget_limit_states", name=name, keys=int(queue_of(name) is None))
    return True


def queue_of(name: str) -> str | None:
    """The queue whose claims a limit of that name bounds: empty for all of them, None for a limit that jobs name."""
    if name == FLEET:
        return ""
    return name.removeprefix(QUEUE) if name.startswith(QUEUE) else None


def _bound(limit: Limit) -> Steps[None]:
    """From the commit on, claims look at it."""
    if not limit.per_key:
        yield from execute("make_limit_state", names=[limit.name])
    if (queue := queue_of(limit.name)) is not None:
        yield from execute("limit_queue", queue=queue, limited=1)


# --- claiming ----------------------------------------------------------------------------------------------


@operation()
def bound_claim(
    queue: str, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
) -> Steps[BoundedClaim]:
    """Claim as many as are wanted and as the limits of the queue and of the fleet let through.

    Their rows are locked first, in the order of their names, and what runs is counted after that: so two claims never
    count the same. A job counts until its end is written, or until it is taken back from a dead worker.
    """
    locked = [LockedLimit.of(row) for row in (yield from execute("lock_queue_limits", queue=queue))]
    held = {"": 0, queue: 0}
    if any(each.counts for each in locked):
        ((of_queue, of_all),) = yield from execute("count_running", queue=queue)
        held = {queue: as_int(of_queue), "": as_int(of_all)}
    room, again_us, why = wanted, None, ""
    for each in locked:
        found = each.room(held=held[queue_of(each.name) or ""], wanted=wanted)
        if len(found.starts_us) < room:
            room, why = len(found.starts_us), f"{each.name}: {found.why}"
            again_us = None if found.again_us is None else found.again_us - each.now_us
    jobs = (yield from claim(room).steps()) if room else []
    for each in locked:
        yield from each.write(len(jobs))
    return BoundedClaim(jobs, room, None if again_us is None else max(0.001, again_us / 1e6), why)


@dataclass(frozen=True, slots=True)
class LockedLimit:
    """A limit whose row this transaction has locked. `limit` None: what is stored means nothing, or not here."""

    name: str
    limit: Limit | None
    state: LimitState
    now_us: int

    @classmethod
    def of(cls, row: Sequence[object]) -> LockedLimit:
        """From a name, a definition, a state and the time."""
        try:
            limit = Limit.of_document(str(row[0]), str(row[1]))
        except InvalidInput:
            limit = None
        return cls(str(row[0]), limit, remembered(text_or_none(row[2])), as_int(row[3]))

    @property
    def counts(self) -> bool:
        """Whether it must be known how many run."""
        return self.limit is not None and self.limit.slots is not None

    def room(self, *, held: int, wanted: int) -> StartRoom:
        """How many may start now. What cannot be understood lets nothing through: the doctor tells of it."""
        if self.limit is None:
            return StartRoom((), None, "what is stored of it cannot be understood here: `fencerow doctor`")
        return room_now(self.limit, self.state, self.now_us, held=held, wanted=wanted)

    def write(self, started: int) -> Steps[None]:
        """Keep what is remembered after so many starts."""
        after = (
            self.state if self.limit is None else after_starts(self.limit, self.state, self.now_us, started)
        )
        if after != self.state:
            yield from execute("write_limit_state", name=self.name, state=document(after))


def document(state: LimitState) -> str:
    """What is kept of it: JSON text."""
    return msgspec.json.encode(state).decode()
