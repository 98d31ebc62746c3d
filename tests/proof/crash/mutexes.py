"""Crashes in the operations of mutexes: whatever dies, the mutex is usable again, and its token has not gone back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.errors import LeaseLost
from fencerow.guards.mutex import advisory, mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case
from tests.proof.race.people import FIRST, JOB, uid, with_running

KEY, STALE_S = "k", 30.0
PURGE_S = 500.0
OWNER, OTHER = uid(201), uid(202)


def taker(holder: str = OWNER, attempt: int | None = None) -> MutexTaker:
    return MutexTaker(
        KEY, holder, STALE_S, "h", 1, None, JOB if attempt else None, attempt, "send" if attempt else None
    )


fence = partial(store.hold_fence, JOB, holder=FIRST, attempt=1)


def free_row() -> Script:
    yield from with_running()()
    yield mutexes.make(taker(OTHER))
    yield mutexes.release(KEY, holder=OTHER, token=1)


def held() -> Script:
    yield from with_running()()
    yield mutexes.make(taker())


def long_disused() -> Script:
    yield from free_row()
    yield later(PURGE_S + 1)


def held_by_job() -> Script:
    yield from free_row()
    yield mutexes.take_in_job(taker(attempt=1), fence, defers=True)


def usable_again() -> Script:
    """Nobody comes back; after its time a stranger gets it, under a higher token."""
    before = yield mutexes.look(KEY)
    yield later(STALE_S + 1)
    token = yield mutexes.take(taker(OTHER))
    if token is None:
        assert before is None, "nobody gets it any more"
        token = yield mutexes.make(taker(OTHER))
        assert token == 1
    else:
        assert before is not None and token > before.token, "the token went back"


def above_what_was() -> Script:
    """Forgotten or not, whoever takes the key gets a token above the one that it had."""
    token = yield mutexes.take(taker())
    if token is None:
        token = yield mutexes.make(taker())
    assert token == 2, f"after token 1 came {token}"


def asked_again(operation: Operation[Any], expected: Callable[[Any], bool]) -> Callable[[], Script]:
    """Whoever asks again after a lost answer gets the same, and then the mutex is usable as before."""

    def script() -> Script:
        try:
            answer = yield operation
        except LeaseLost:
            return
        assert expected(answer), f"{operation.name} said {answer!r} when it was asked again"
        yield from usable_again()

    return script


def case(
    name: str,
    setup: Callable[[], Script],
    operation: Operation[Any],
    expected: Callable[[Any], bool] | None = None,
) -> list[Case]:
    """The caller is gone; and the caller asks again."""
    gone = Case(f"{name}, the caller gone", setup, operation, usable_again, (JOB,))
    return [gone] if expected is None else [gone, *asking(name, setup, operation, expected)]


def asking(
    name: str, setup: Callable[[], Script], operation: Operation[Any], expected: Callable[[Any], bool]
) -> list[Case]:
    """The caller asks again; what a gone caller leaves is another case of the same rows."""
    assert operation.repeatable, f"{operation.name} may not be repeated blindly"
    return [Case(name, setup, operation, asked_again(operation, expected), (JOB,))]


def any_answer(_: Any) -> bool:
    return True


MUTEX_CASES: list[Case] = [
    *case("take_mutex", free_row, mutexes.take(taker()), lambda token: token == 2),
    *case("make_mutex", with_running(), mutexes.make(taker()), lambda token: token in (1, None)),
    *case(
        "take_in_job",
        free_row,
        mutexes.take_in_job(taker(attempt=1), fence, defers=True),
        lambda token: token == 2,
    ),
    *asking(
        "take_in_job, never taken",
        with_running(),
        mutexes.take_in_job(taker(attempt=1), fence, defers=True),
        lambda token: token == 1,
    ),
    *asking("renew_mutex", held, mutexes.renew(KEY, holder=OWNER, token=1), bool),
    *asking("renew_in_job", held_by_job, mutexes.renew_in_job(KEY, fence, holder=OWNER, token=2), bool),
    *case("release_mutex", held, mutexes.release(KEY, holder=OWNER, token=1), any_answer),
    *case("abandon_mutex", held, mutexes.abandon(KEY, holder=OWNER), any_answer),
    *case("free_mutex", held, mutexes.free(KEY, token=1, actor="ann", reason=None)),
    *case("guard_mutex", held, mutexes.guard(KEY, token=1)),
    *asking("defer", held, mutexes.defer(KEY, JOB, 1, fence, most=8), lambda deferral: deferral == 1),
    *asking(
        "defer, once too often",
        held,
        mutexes.defer(KEY, JOB, 1, fence, most=0),
        lambda deferral: deferral is None,
    ),
    Case("purge", long_disused, mutexes.purge("", age_s=PURGE_S, limit=9), above_what_was, (JOB,)),
    *asking("look", held, mutexes.look(KEY), bool),
    *asking("held", held, mutexes.held(), bool),
    *case("hold_number", held, advisory.hold_number(7)),
    *case("try_number", held, advisory.try_number(7)),
]
