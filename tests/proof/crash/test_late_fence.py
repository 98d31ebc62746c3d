"""Whatever stops in `job.transaction()` with a guard: its job is free for others, and nothing stale is committed.

A worker that dies loses its connection. One that stands still keeps its transaction open, and may go on when its job is
another's already: so its guards lock nothing of the job, and the fence comes last, with the success.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.running import HoldFence, Running
from fencerow.db.run import Operation, Steps
from fencerow.errors import LeaseLost
from fencerow.guards.once.reserving import OnceKey, Turn, end_once, reserve_once
from fencerow.guards.replace.deciding import Found
from fencerow.guards.replace.sources import Stamp, replace_rows
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import Case, Point, Unrecovered, crash, crash_everywhere
from tests.kit.pace import PATIENCE_S
from tests.proof.crash.frozen import Frozen
from tests.proof.race import users
from tests.proof.race.moved import Raced
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    die,
    new_job,
    reclaim,
    succeed,
    uid,
    with_jobs,
)
from tests.proof.race.test_replace import reserve, wanted
from tests.proof.race.users import Users

TIMEOUT_S = 300.0  # longer than any test waits
SHORT_S = 1.0
FENCE = """      AND job.holder = CAST(:holder AS uuid)
      AND job.attempt = outcome.attempt
"""
GUARDS = ("once", "replace_for", "by_attempt")


@pytest.fixture(scope="session", autouse=True)
def _tables(arenas: Mapping[str, Any]) -> Iterator[None]:
    yield from users.made(arenas)


class Guarded:
    """Attempts of one job, each with a guard and an effect in its own transaction."""

    def __init__(self, guard: str, arena: Any, fence: HoldFence = store.check_fence) -> None:
        self.name = guard
        self._fence = fence
        self._mine = Users(arena.mode)
        self._rows = Raced(arena)
        self._number = 0  # of the last reservation of the source

    def setup(self, timeout_s: float = TIMEOUT_S) -> Script:
        """The first worker runs the job, and a second one is there."""
        yield self._mine.clear()
        yield self._rows.rows("a")
        yield from with_jobs(new_job(timeout_s=timeout_s))()
        yield store.claim("mail", [store.Mark(0)], holder=FIRST, names=["send"], limit=1, margin_s=0.0)
        yield from self.prepared(1)

    def prepared(self, attempt: int) -> Script:
        """What an attempt does before its transaction: a source is reserved in one of its own."""
        if self.name == "replace_for":
            answer, _columns = yield reserve(self._mine, wanted(attempt, attempt))
            assert answer.found is Found.NEEDED
            self._number = answer.number

    def whole(self, holder: str, attempt: int) -> Operation[str]:
        """The transaction, with the job's success as its end. A refused one undoes all of it."""
        own = Running(JOB, "send", "mail", holder, attempt, 0, self._fence)
        number = self._number

        def steps() -> Steps[str]:
            yield from store.bound_idle(JOB).steps()
            yield from self._guard(own, number)
            if not (yield from succeed(holder, attempt).steps()):
                raise LeaseLost("the success changed no row", "", "")
            return "done"

        return Operation("job.transaction", steps, writes="jobs")

    def effects(self) -> Operation[list[str]]:
        return self._mine.read_effects()

    def _guard(self, own: Running, number: int) -> Steps[None]:
        effect = self._mine.effect(own.holder)
        match self.name:
            case "once":
                yield from _once(own, effect)
            case "replace_for":
                content = wanted(own.attempt, own.attempt)
                done = yield from replace_rows(content, number, own, row_count=1, write=effect.steps).steps()
                assert done is Stamp.FRESH
            case _:
                claim = self._rows.move_in_job(
                    "claim", holder=own.holder, attempt=own.attempt, fence=own.hold_fence
                )
                assert (yield from claim.steps()) is not None
                yield from effect.steps()


def _once(own: Running, effect: Operation[Any]) -> Steps[None]:
    key, token = OnceKey("s", "k", f"job:{JOB}", own.attempt, "p", 60.0, 3600.0), uid(400 + own.attempt)
    taken = yield from reserve_once(key, token, own).steps()
    assert taken.turn is Turn.MINE
    yield from effect.steps()
    yield from end_once(key, token, '"done"').steps()


def heir(guarded: Guarded, frozen: Frozen | None, *, waits: bool = False) -> Script:
    """Another worker takes the job over while the first one is as it is; then that goes on, if it only stood still."""
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)
    until = time.monotonic() + PATIENCE_S
    while not (yield reclaim(FIRST))[0] and waits:
        assert time.monotonic() < until, "its transaction is never ended"
    claimed = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    state = (yield store.read_fences([JOB]))[JOB].state
    assert claimed or state is State.SUCCEEDED, "its job is nobody's"
    if frozen is not None:
        frozen.wake()
        assert not claimed or frozen.outcome != "done", "a stale attempt's transaction was committed"
    if claimed:
        yield from guarded.prepared(2)
        assert (yield guarded.whole(SECOND, 2)) == "done"
    assert (yield guarded.effects()) == [SECOND if claimed else FIRST]


def case(guarded: Guarded, frozen: Frozen | None = None, *, late: bool = False) -> Case:
    """`late`: it stops with the success done and not committed, which locks the job until the server ends it."""
    return Case(
        f"job.transaction() with {guarded.name}",
        partial(guarded.setup, SHORT_S) if late else guarded.setup,
        Operation("job.transaction", lambda: guarded.whole(FIRST, 1).steps(), writes="jobs"),
        partial(heir, guarded, frozen, waits=late),
        (JOB,),
    )


@pytest.fixture
def frozen(arenas: Mapping[str, Any]) -> Iterator[Frozen]:
    made = Frozen(arenas["plain"])
    yield made
    made.close()


def frozen_everywhere(arena: Any, guarded: Guarded, frozen: Frozen) -> int:
    """Stand still after each statement of the transaction; returns how many there are."""
    crash(arena, case(guarded, frozen), Point("committed"), frozen.freeze)
    statements = frozen.done
    for number in range(len(statements)):
        late = "succeed" in statements[: number + 1]
        crash(arena, case(guarded, frozen, late=late), Point("after", number), frozen.freeze)
    return len(statements)


@pytest.mark.parametrize("mode", ["plain", "sqlite"])
@pytest.mark.parametrize("guard", GUARDS)
def test_a_worker_may_die_anywhere_in_it(
    guard: str, mode: str, arenas: Mapping[str, Any], record_property: Any
) -> None:
    arena = arenas[mode]

    number, seconds = crash_everywhere(arena, case(Guarded(guard, arena)))

    facts = {"scenario": f"crash in job.transaction() with {guard}", "mode": mode, "played": number}
    record_property("crash", json.dumps({**facts, "total": number, "seconds": seconds}))


# On SQLite whoever stands still keeps the file until its process ends: that is the test above.


@pytest.mark.parametrize("guard", GUARDS)
def test_a_worker_may_stand_still_anywhere_in_it(
    guard: str, arenas: Mapping[str, Any], frozen: Frozen, record_property: Any
) -> None:
    arena, began = arenas["plain"], time.monotonic()

    number = frozen_everywhere(arena, Guarded(guard, arena), frozen)

    facts = {"scenario": f"frozen in job.transaction() with {guard}", "mode": "plain", "played": number}
    record_property("crash", json.dumps({**facts, "total": number, "seconds": time.monotonic() - began}))


# Controls.


@pytest.mark.parametrize("guard", GUARDS)
def test_a_fence_that_is_held_from_the_guard_on_keeps_the_job_from_everybody(
    guard: str, arenas: Mapping[str, Any], frozen: Frozen
) -> None:
    arena = arenas["plain"]

    with pytest.raises(Unrecovered, match="its job is nobody's"):
        frozen_everywhere(arena, Guarded(guard, arena, store.hold_fence), frozen)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_success_that_does_not_name_its_attempt_commits_what_is_stale(
    guard: str, arenas: Mapping[str, Any]
) -> None:
    arena = arenas["plain"]
    whole = arena.queries
    arena.queries = whole.altered("succeed", FENCE, "")
    frozen = Frozen(arena)
    try:
        with pytest.raises(Unrecovered, match="stale attempt's transaction was committed"):
            frozen_everywhere(arena, Guarded(guard, arena), frozen)
    finally:
        frozen.close()
        arena.queries = whole


def test_an_effect_that_is_committed_before_the_success_is_seen(arenas: Mapping[str, Any]) -> None:
    arena = arenas["plain"]
    whole = case(Guarded("once", arena))

    with pytest.raises(Unrecovered):
        crash_everywhere(
            arena, replace(whole, operation=msgspec.structs.replace(whole.operation, alone=True))
        )
