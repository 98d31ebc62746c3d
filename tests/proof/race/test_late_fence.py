"""Guards in a job's own transaction: the fence is only looked at there, and comes last, with the job's success."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.core.store.running import Running
from fencerow.db.run import Operation, Steps
from fencerow.errors import LeaseLost
from fencerow.guards.once.reserving import OnceKey, Turn, end_once, reserve_once
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race import users
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    die,
    fence,
    reclaim,
    register,
    succeed,
    uid,
    with_running,
)
from tests.proof.race.users import Users

KEY = OnceKey("s", "k", f"job:{JOB}", 1, "p", 60.0, 3600.0)


@pytest.fixture(scope="session", autouse=True)
def _tables(arenas: Mapping[str, Any]) -> Iterator[None]:
    yield from users.made(arenas)


@pytest.fixture
def mine(race: Race) -> Users:
    return Users(race.mode)


def whole(mine: Users, holder: str, attempt: int) -> Operation[str]:
    """What a handler does in `job.transaction()`, and its end: one transaction, which a refused success undoes."""
    own = Running(JOB, "send", "mail", holder, attempt, 0, store.check_fence)
    token = uid(400 + attempt)

    def steps() -> Steps[str]:
        taken = yield from reserve_once(KEY, token, own).steps()
        if taken.turn is Turn.MINE:
            yield from mine.effect(holder).steps()
            yield from end_once(KEY, token, '"done"').steps()
        if not (yield from succeed(holder, attempt).steps()):
            raise LeaseLost("the success changed no row", "", "")
        return "done"

    return Operation("whole", steps, writes="jobs")


def attempts(mine: Users) -> Scenario:
    """The first attempt is given up and goes on; its job is taken from its worker and runs again."""

    def setup() -> Script:
        yield mine.clear()
        yield from with_running()()
        yield register(SECOND)
        yield later(LEASE_S + 1)
        yield store.renew(holder=SECOND)
        yield die(SECOND)

    def old(_: Any) -> Script:
        return (yield from said(partial(whole, mine, FIRST, 1)))

    def new(_: Any) -> Script:
        yield reclaim(FIRST)
        claimed = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
        if not claimed:
            return "nothing to do"
        return (yield from said(partial(whole, mine, SECOND, 2)))

    def check(story: Story) -> None:
        done = [holder for name, holder in (("old", FIRST), ("new", SECOND)) if story.results[name] == "done"]
        found = fence(story)
        assert FIRST not in done or story.results["new"] == "nothing to do", (
            "a stale attempt's write was committed"
        )
        assert mine.effects(story) == done, "an effect without its success, or twice"
        assert found is not None and (found.state.value == "succeeded") is bool(done)

    return Scenario(
        "once in a zombie's own transaction × reclaim and once in the newer one's",
        setup,
        [Actor("old", old), Actor("new", new)],
        check,
    )


def said(make: Any) -> Script:
    try:
        return (yield make())
    except LeaseLost:
        return "lost"


def test_nothing_of_a_stale_attempt_is_committed(race: Race, mine: Users) -> None:
    race(attempts(mine))


@in_modes("plain", "held")
def test_it_is_when_the_success_does_not_name_its_attempt(race: Race, mine: Users) -> None:
    here = (
        "      AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = outcome.attempt\n",
        "",
    )
    race.turns_red(
        attempts(mine), Cut("succeed", here)
    )  # on SQLite nobody comes between the look and the commit
