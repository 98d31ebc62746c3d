"""The operations behind `once`: a key is taken before its effect, and ended, renewed or given back after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fencerow.core.errors import Busy
from fencerow.core.store.running import Running
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.guards.checked import hold_attempt
from fencerow.guards.once.errors import OnceConflict

ROUNDS_MAX = 20  # of take and look; each loses only to somebody who won


@dataclass(frozen=True, slots=True)
class OnceKey:
    """What is to be done once: by whom, for which payload, and for how long it counts.

    `attempt` tells a later run of the owner from one that may be at work still; None: no later run is known.
    """

    scope: str
    key: str
    owner: str
    attempt: int | None
    fingerprint: str
    stale_s: float
    lifetime_s: float


class Turn(Enum):
    """Whose turn it is."""

    MINE = "the key was taken for this caller"
    DONE = "it was done, and its result is known"
    OTHERS = "somebody else is doing it"


@dataclass(frozen=True, slots=True)
class Reserved:
    """What taking a key came to. `result` is JSON text if it is done."""

    turn: Turn
    owner: str
    result: str | None = None
    since_us: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    owner: str
    attempt: int | None
    token: str
    fingerprint: str
    done: bool
    result: str | None
    since_us: int
    lapsed: bool
    over: bool


@operation(repeatable=True)
def reserve_once(wanted: OnceKey, token: str, attempt: Running | None = None) -> Steps[Reserved]:
    """Take the key, or find out whose it is. One transaction, before the effect.

    May be repeated with the same token. Inside a job the job's row is locked first, so that a stale attempt
    takes nothing from a newer one of the same job. The same attempt is refused as others are: what it began before may
    be at work in another of its threads or coroutines.

    Raises:
        OnceConflict: the key belongs to another payload. LeaseLost: the attempt no longer holds its job.
    """
    yield from hold_attempt(attempt)
    for _ in range(ROUNDS_MAX):
        # Looked at first: an upsert that is refused locks the row all the same, and its commit waits for the disk.
        found = yield from _read(wanted.scope, wanted.key)
        turn = _judged(found, wanted, token)
        if found is not None and turn is not None:
            return Reserved(turn, found.owner, found.result, found.since_us)
        taken = yield from execute(
            "reserve_once",
            scope=wanted.scope,
            key=wanted.key,
            owner=wanted.owner,
            attempt=wanted.attempt,
            token=token,
            fingerprint=wanted.fingerprint,
            stale_s=wanted.stale_s,
            kept_s=wanted.stale_s + wanted.lifetime_s,
        )
        if taken:
            return Reserved(Turn.MINE, wanted.owner)
    raise _restless(wanted.key)


@operation(repeatable=True)
def end_once(wanted: OnceKey, token: str, result: str) -> Steps[bool]:
    """Keep the result; false means that the lease ran out and another has the key. May be repeated."""
    ended = yield from execute(
        "end_once",
        scope=wanted.scope,
        key=wanted.key,
        token=token,
        lifetime_s=wanted.lifetime_s,
        result=result,
    )
    if ended:
        return True
    found = yield from _read(wanted.scope, wanted.key)
    return found is not None and found.token == token and found.done


@operation(alone=True, repeatable=True)
def renew_once(wanted: OnceKey, token: str) -> Steps[bool]:
    """Move the end of the lease; false means that the key is not this caller's any more."""
    rows = yield from execute(
        "renew_once",
        scope=wanted.scope,
        key=wanted.key,
        token=token,
        stale_s=wanted.stale_s,
        kept_s=wanted.stale_s + wanted.lifetime_s,
    )
    return bool(rows)


@operation(alone=True, repeatable=True, patience_s=1.0)
def release_once(scope: str, key: str, token: str) -> Steps[bool]:
    """Give the key back; false means that there was nothing to give: it ended, or another took it over.

    It hardly waits: who holds the row's lock may be a transaction of the caller's own.
    """
    return bool((yield from execute("release_once", scope=scope, key=key, token=token)))


@operation(alone=True)
def purge_once(*, limit: int) -> Steps[int]:
    """Forget keys whose lifetime is over; returns how many."""
    return len((yield from execute("purge_once", limit=limit)))


def _read(scope: str, key: str) -> Steps[_Found | None]:
    rows = yield from execute("read_once", scope=scope, key=key)
    if not rows:
        return None
    owner, attempt, token, fingerprint, done, result, since_us, lapsed, over = rows[0]
    return _Found(
        str(owner),
        as_int_or_none(attempt),
        str(token),
        str(fingerprint),
        bool(done),
        text_or_none(result),
        as_int(since_us),
        bool(lapsed),
        bool(over),
    )


def _judged(found: _Found | None, wanted: OnceKey, token: str) -> Turn | None:
    """Whose turn it is by what was found; None when it may be taken after all: things changed meanwhile."""
    if found is None or found.over:
        return None
    if found.fingerprint != wanted.fingerprint:
        raise _conflict(found, wanted)
    if found.done:
        return Turn.DONE
    if found.token == token:
        return None  # an earlier try of this very call took it
    if found.owner == wanted.owner and found.attempt is not None and wanted.attempt is not None:
        if found.attempt < wanted.attempt:
            return None
        if found.attempt > wanted.attempt:
            return Turn.OTHERS
    return None if found.lapsed else Turn.OTHERS


def _conflict(found: _Found, wanted: OnceKey) -> OnceConflict:
    state = "was done" if found.done else "is being done"
    return OnceConflict(
        f"key {wanted.key!r} {state} by {found.owner} for another payload",
        f"its fingerprint is {found.fingerprint[:16] or 'none'}, this one's is {wanted.fingerprint[:16] or 'none'}",
        "send the same payload, or use another key",
        owner=found.owner,
    )


def _restless(key: str) -> Busy:
    return Busy(
        f"others took key {key!r} too often",
        f"{ROUNDS_MAX} rounds were lost to others",
        "ask again",
    )
