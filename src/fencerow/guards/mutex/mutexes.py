"""The operations on mutexes: take, renew, release, guard, look. Each is one statement but where an attempt is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from fencerow.core.errors import LeaseLost
from fencerow.core.model.job import At, AtOrNone, instant
from fencerow.db.removal import Looked
from fencerow.db.run import (
    Operation,
    Rows,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    operation,
    text_or_none,
)

Fence = Callable[[], Operation[bool | None]]

DEFERRAL_AGE_S = 7 * 24 * 3600.0  # longer than any job puts itself back for one mutex


class MutexTaker(msgspec.Struct, frozen=True):
    """Who wants a mutex. `holder` is made for one take alone, so that its answer may be lost and asked for again."""

    key: str
    holder: str
    stale_s: float
    host: str
    pid: int
    purpose: str | None = None
    job_id: str | None = None
    attempt: int | None = None
    job_name: str | None = None


class MutexRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A mutex as it stands. Instants are microseconds since 1970 by the database's clock; `holder` None: free.

    `freed_*`: the last time that an operator took it from its holder.
    """

    key: str
    token: int
    holder: str | None
    stale_s: float
    since_us: int
    until_us: int
    job_id: str | None
    attempt: int | None
    job_name: str | None
    host: str
    pid: int
    purpose: str | None
    freed_at_us: int | None
    freed_by: str | None
    freed_reason: str | None
    now_us: int

    freed_at = AtOrNone("freed_at_us")
    now = At("now_us")

    @property
    def is_held(self) -> bool:
        """Whether somebody holds it, stale or not."""
        return self.holder is not None

    @property
    def is_stale(self) -> bool:
        """Whether it is held past its time, so that anybody may take it over."""
        return self.holder is not None and self.until_us <= self.now_us

    @property
    def since(self) -> datetime | None:
        """When it was taken, by the database's clock; None while nobody holds it."""
        return instant(self.since_us)

    @property
    def until(self) -> datetime | None:
        """When others may take it unless it is renewed; None while nobody holds it."""
        return instant(self.until_us)


# --- taking ------------------------------------------------------------------------------------------------


@operation(alone=True, repeatable=True)
def take(taker: MutexTaker) -> Steps[int | None]:
    """Take a mutex whose row is there; returns its token, or None when it is busy or was never taken before.

    May be repeated by the same taker, whose token stays the same. Waits for nobody: a row that another locks is busy.
    """
    return _token((yield from execute("take_mutex", _parameters(taker))))


@operation(repeatable=True)
def make(taker: MutexTaker) -> Steps[int | None]:
    """Take a mutex that has no row; None when there is one by now. After a lost answer `take` tells more."""
    token = _token((yield from execute("make_mutex", _parameters(taker))))
    if token is None:
        return None
    lifted = _token((yield from execute("lift_mutex", key=taker.key, holder=taker.holder)))
    return token if lifted is None else lifted


@operation(repeatable=True)
def take_in_job(taker: MutexTaker, fence: Fence, *, defers: bool) -> Steps[int | None]:
    """Take it for an attempt of a job: the one that the job's row names until this is committed.

    Locks the job's row first, then the mutex. With `defers` the job's deferrals are forgotten when it gets it.

    Raises:
        LeaseLost: the attempt no longer holds its job. Nothing was taken.
    """
    yield from _check(fence)
    token = yield from take(taker).steps()
    if token is None:
        token = yield from make(taker).steps()
    if token is not None and defers:
        yield from _forget(taker)
    return token


# --- holding -----------------------------------------------------------------------------------------------


@operation(alone=True, repeatable=True)
def renew(key: str, *, holder: str, token: int) -> Steps[bool]:
    """Keep it for another `stale_s`; false when this take does not hold it any more."""
    return bool((yield from execute("renew_mutex", key=key, holder=holder, token=token)))


@operation(repeatable=True)
def renew_in_job(key: str, fence: Fence, *, holder: str, token: int) -> Steps[bool]:
    """Keep it for an attempt, while that is its job's newest."""
    if (yield from fence().steps()) is None:
        return False
    return (yield from renew(key, holder=holder, token=token).steps())


@operation(alone=True, repeatable=True)
def release(key: str, *, holder: str, token: int) -> Steps[bool]:
    """Give it back; false when this take did not hold it any more, and then nothing is changed."""
    return bool((yield from execute("release_mutex", key=key, holder=holder, token=token)))


@operation(alone=True, repeatable=True)
def abandon(key: str, *, holder: str) -> Steps[bool]:
    """Give back what a take may have brought whose answer nobody knows."""
    return bool((yield from execute("abandon_mutex", key=key, holder=holder)))


@operation(alone=True)
def free(key: str, *, token: int, actor: str | None, reason: str | None) -> Steps[bool]:
    """Take it from whoever holds it under this token, in an operator's name; false when nobody does."""
    return bool((yield from execute("free_mutex", key=key, token=token, actor=actor, reason=reason)))


@operation(inside=True)
def guard(key: str, *, token: int) -> Steps[bool]:
    """Whether this token is current; if so nobody takes the mutex before the transaction ends."""
    return bool((yield from execute("guard_mutex", key=key, token=token)))


# --- forgetting --------------------------------------------------------------------------------------------


@operation()
def purge(after: str, *, age_s: float, limit: int) -> Steps[Looked[str]]:
    """Forget what nobody has used for so long, among so many keys after this one.

    It goes on after "" when that was the last. Tokens never go back by it: the highest one forgotten is where new keys
    begin.
    """
    ((looked, last),) = yield from execute("mutex_keys_after", after=after, limit=limit)
    if not looked:
        return Looked("")
    gone = yield from execute("purge_mutexes", after=after, last=str(last), age_s=age_s)
    if gone:
        yield from execute("raise_mutex_floor", token=max(as_int(row[0]) for row in gone))
    return Looked(str(last) if looked == limit else "", as_int(looked), len(gone))


# --- deferring ---------------------------------------------------------------------------------------------


@operation(repeatable=True)
def defer(key: str, job_id: str, attempt: int, fence: Fence, *, most: int) -> Steps[int | None]:
    """Count that an attempt puts its job back because of a busy mutex: the how manieth time it is.

    None when it was back for `most` times already; the count then begins anew.

    Raises:
        LeaseLost: the attempt no longer holds its job. Nothing was counted.
    """
    yield from _check(fence)
    rows = yield from execute("count_deferral", key=key, job_id=job_id, attempt=attempt)
    yield from execute("purge_deferrals", age_s=DEFERRAL_AGE_S)
    deferrals = as_int(rows[0][0]) if rows else most + 1
    if deferrals <= most:
        return deferrals
    yield from execute("forget_deferrals", key=key, job_id=job_id, attempt=attempt)
    return None


# --- looking -----------------------------------------------------------------------------------------------


@operation(alone=True, repeatable=True, writes="")
def look(key: str) -> Steps[MutexRecord | None]:
    """The mutex as it stands; None when it was never taken."""
    rows = yield from execute("read_mutex", key=key)
    return _record(rows[0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def held(*, limit: int = 1_000) -> Steps[list[MutexRecord]]:
    """Those that are held, the longest first."""
    return [_record(row) for row in (yield from execute("held_mutexes", limit=limit))]


def _check(fence: Fence) -> Steps[None]:
    if (yield from fence().steps()) is None:
        raise LeaseLost(
            "this attempt no longer holds its job",
            "it ended, or belongs to a newer attempt",
            "stop working on it; no mutex was taken",
        )


def _forget(taker: MutexTaker) -> Steps[Rows]:
    assert taker.job_id is not None and taker.attempt is not None
    return (yield from execute("forget_deferrals", key=taker.key, job_id=taker.job_id, attempt=taker.attempt))


def _parameters(taker: MutexTaker) -> dict[str, str | int | float | None]:
    return msgspec.structs.asdict(taker)


def _token(rows: Rows) -> int | None:
    return as_int(rows[0][0]) if rows else None


def _record(row: tuple[object, ...]) -> MutexRecord:
    assert isinstance(row[3], float)
    return MutexRecord(
        key=str(row[0]),
        token=as_int(row[1]),
        holder=text_or_none(row[2]),
        stale_s=row[3],
        since_us=as_int(row[4]),
        until_us=as_int(row[5]),
        job_id=text_or_none(row[6]),
        attempt=as_int_or_none(row[7]),
        job_name=text_or_none(row[8]),
        host=str(row[9]),
        pid=as_int(row[10]),
        purpose=text_or_none(row[11]),
        freed_at_us=as_int_or_none(row[12]),
        freed_by=text_or_none(row[13]),
        freed_reason=text_or_none(row[14]),
        now_us=as_int(row[15]),
    )
