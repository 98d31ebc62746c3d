"""The operations on limits: define, change, remove, look; and the claim from a queue that has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from fencerow.core.model.job import At, Claimed, instant
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.claims import lanes
from fencerow.core.store.decoding import elements, salvaged
from fencerow.core.worker.brought import BoundedClaim
from fencerow.db.locks import take_lock
from fencerow.db.run import Operation, Steps, as_int, execute, operation, text_or_none
from fencerow.limits.definition import Limit
from fencerow.limits.locked import LockedLimit, lock_of, looked_at, queue_of, remembered
from fencerow.limits.room import LimitState
from fencerow.turns.limiting import Held


class LimitRecord(msgspec.Struct, frozen=True, array_like=True):
    """A limit as it is stored. Instants are microseconds since 1970 by the database's clock.

    `revision` is raised by each change; `version` is that of the newest declaration in code, 0 if there is none.
    `damaged` names what cannot be read, because something other than Fencerow wrote it: it reads as nothing.
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
    damaged: tuple[str, ...] = ()

    now = At("now_us")

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


def record_of(text: str) -> LimitRecord:
    """One limit in a JSON array. A file keeps whatever was written into its columns; one row never hides the others."""
    try:
        return msgspec.json.decode(text, type=LimitRecord)
    except UNREADABLE:
        kept = list(zip(msgspec.structs.fields(LimitRecord), elements(text), strict=False))
        values, damaged = salvaged(
            {each.name: each.type for each, _ in kept}, {each.name: said for each, said in kept}
        )
        return LimitRecord(**values, damaged=tuple(damaged))


# --- defining ----------------------------------------------------------------------------------------------


@operation(alone=True, repeatable=True, writes="")
def read_limits(names: Sequence[str] | None = None) -> Steps[list[LimitRecord]]:
    """The limits of these names, or all, by name."""
    rows = yield from execute("read_limits", names=None if names is None else list(names))
    return [record_of(str(row[0])) for row in rows]


class NewestDeclaration(msgspec.Struct, frozen=True):
    """What became of a declaration: whether it changed anything, and what else is declared under its version."""

    changed: bool
    version: int
    definition: str | None
    by: str | None


@operation(repeatable=True)
def declare(limit: Limit, *, actor: str | None) -> Steps[NewestDeclaration]:
    """Store what code declares, unless the same or a newer declaration is known. May be repeated.

    One that is known waits for nobody: most workers that start change nothing.
    """
    known = yield from execute("declared_limit", name=limit.name)
    changed = False
    if not known or as_int(known[0][0]) < limit.version:
        yield from take_lock(lock_of(limit.name))
        stored = yield from execute(
            "declare_limit",
            name=limit.name,
            definition=limit.document(),
            version=limit.version,
            actor=actor,
        )
        if changed := bool(stored):
            yield from _bound(limit)
        known = yield from execute("declared_limit", name=limit.name)
    ((version, definition, by),) = known
    return NewestDeclaration(changed, as_int(version), text_or_none(definition), text_or_none(by))


@operation()
def define(limit: Limit, *, actor: str | None, reason: str | None) -> Steps[bool]:
    """Make a limit; false if there is one of that name."""
    document = limit.document()
    yield from take_lock(lock_of(limit.name))
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
    yield from take_lock(lock_of(limit.name))
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
    yield from take_lock(lock_of(name))
    if not (yield from execute("remove_limit", name=name, revision=revision)):
        return False
    yield from execute("ignore_failures", name=name)
    queue = queue_of(name)
    if queue is None:
        yield from execute("forget_named_limit", name=name)
        yield from execute("arrive_at_limit", name=name)
    else:
        yield from execute("forget_limit_state", name=name)
        yield from execute("limit_queue", queue=queue, limited=0)
    return True


def _bound(limit: Limit) -> Steps[None]:
    """From the commit on, claims look at it; those who wait under one that jobs name may have room now."""
    queue = queue_of(limit.name)
    yield from execute("watch_failures" if limit.breaker is not None else "ignore_failures", name=limit.name)
    if queue is None:
        yield from execute("arrive_at_limit", name=limit.name)
    else:
        yield from _after_claims_under_way(queue)
        yield from execute("make_limit_state", name=limit.name)
        yield from execute("limit_queue", queue=queue, limited=1)


def _after_claims_under_way(queue: str) -> Steps[None]:
    """Where nothing bounds the queue yet, wait until the claims have ended that began before, and let none begin: they
    look at no limit, and who counts under the new one would not see what they take."""
    ((is_limited,),) = yield from execute("is_limited", queue=queue)
    if not is_limited:
        yield from execute("wait_briefly")
        yield from execute("lock_claims")


# --- claiming ----------------------------------------------------------------------------------------------


@operation()
def bound_claim(
    queue: str, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
) -> Steps[BoundedClaim]:
    """Claim as many as are wanted and as the limits of the queue and of the fleet let through.

    Their rows are locked first, in the order of their names, and what runs is counted after that: so two claims never
    count the same. A job counts until its end is written, or until it is taken back from a dead worker.
    """
    rows = yield from execute("lock_queue_limits", queue=queue)
    locked = yield from looked_at([LockedLimit.of(row) for row in rows])
    held = {"": 0, queue: 0}
    if any(each.counts for each in locked):
        ((of_queue, of_all),) = yield from execute("count_running", queue=queue)
        held = {queue: as_int(of_queue), "": as_int(of_all)}
    room, again_us = wanted, None
    for each in locked:
        found = each.room(Held(held[queue_of(each.name) or ""]), wanted=wanted)
        if found.count < room:
            room = found.count
            again_us = None if found.again_us is None else found.again_us - each.now_us
    jobs = (yield from claim(room).steps()) if room else []
    assert len(jobs) <= room, f"claimed {len(jobs)} jobs where limits let {room} through"
    ids = [job.id for job in jobs]
    waits: bool | None = None if room == 0 else False
    if 0 < len(jobs) == room < wanted and any(each.is_paced for each in locked):
        waits = yield from _waits(queue)
    for each in locked:
        if (state := each.to_keep(ids, waits=waits)) is not None:
            yield from execute("write_limit_state", name=each.name, state=state)
    news = [each.news for each in locked if each.news]
    return BoundedClaim(jobs, room, None if again_us is None else max(0.001, again_us / 1e6), news)


def _waits(queue: str) -> Steps[bool]:
    """Whether a job of this queue is due: a skip scan over its lanes."""
    found, now_us = yield from lanes(queue).steps()
    return any(lane.first_us <= now_us for lane in found)
