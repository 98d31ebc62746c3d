"""Races of declared moves on a user's table: one wins, a stale one is refused, and no stage is done twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest

from fencerow.db.run import Steps
from fencerow.errors import LeaseLost
from fencerow.guards.transitions import Refusal
from fencerow_proof.arena.actor import Abandoned, Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story, explore
from fencerow_proof.explorer.violation import Violation
from tests.guards.transitions.tables import BOXES, LEASE_S, MAIN
from tests.proof.race.conftest import RED_WITHIN, Asked, Cut, Race, in_modes
from tests.proof.race.moved import Raced
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, SECOND, claim, requeue, uid, with_running

QUEUED = ("\"status\" = 'queued'", "true")
FENCE = ('AND "attempts" = :fencerow_fence', "")
BOXES_FENCE = ('AND "boxes_fence" = :fencerow_fence', "")


@pytest.fixture
def raced(race: Race, arenas: Mapping[str, Any]) -> Iterator[Raced]:
    made = _KNOWN.setdefault(race.mode, Raced(arenas[race.mode]))
    yield made
    made.whole()


_KNOWN: dict[str, Raced] = {}


@pytest.fixture
def turns_red(
    race: Race, raced: Raced, arenas: Mapping[str, Any], request: pytest.FixtureRequest, record_property: Any
) -> Callable[..., Violation]:
    """Without the guards some order does not hold."""

    def red(make: Callable[[Raced], Scenario], *cuts: tuple[str, str]) -> Violation:
        written = raced.without(*cuts)
        scenario = make(raced)
        started = time.monotonic()
        with pytest.raises(Violation) as caught:
            explore(arenas[race.mode], scenario, limit=max(request.config.getoption("--orders"), RED_WITHIN))
        assert written.met, "the guard that was to be cut stands nowhere"
        told = [f"{old} → {new}" for old, new in cuts]
        facts = {"scenario": scenario.name, "mode": race.mode, "cuts": told, "order": caught.value.order}
        more = {"seconds": time.monotonic() - started, **Asked.by(request).facts}
        record_property("control", json.dumps({**facts, **more}))
        return caught.value

    return red


def acting(name: str, script: Callable[[], Script]) -> Actor:
    return Actor(name, lambda _: script())


def seconds(instant: Any) -> float:
    """A stamp as PostgreSQL or SQLite gives it."""
    return instant.timestamp() if isinstance(instant, datetime) else instant / 1e6


# Claim × claim × cancel.


def one_claim(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        won = [name for name, row in story.results.items() if row is not None]
        assert len(won) == 1, f"{won} all won"
        row = story.run(raced.read())
        assert row["status"] == ("cancelled" if won == ["canceller"] else "running")
        assert row["attempts"] == (0 if won == ["canceller"] else 1)

    actors = [
        doing("first", raced.move("claim")),
        doing("second", raced.move("claim")),
        doing("canceller", raced.move("cancel")),
    ]
    return Scenario("claim × claim × cancel of a row", raced.prepared(), actors, check)


def test_of_two_claims_and_a_cancel_one_wins(race: Race, raced: Raced) -> None:
    race(one_claim(raced))


def test_two_win_when_the_state_is_not_asked(turns_red: Callable[..., Violation]) -> None:
    turns_red(one_claim, QUEUED)


# A claim whose transaction is rolled back.


def abandoned_claim(raced: Raced) -> Scenario:
    def steps() -> Steps[None]:
        yield from raced.move("claim").steps()
        raise Abandoned

    def check(story: Story) -> None:
        assert story.results["second"] is not None, "lost to a claim that never was"
        assert story.run(raced.read())["attempts"] == 1

    actors = [acting("first", lambda: abandoning(steps)), doing("second", raced.move("claim"))]
    return Scenario("claim rolled back × claim of a row", raced.prepared(), actors, check)


def abandoning(steps: Callable[[], Steps[None]]) -> Script:
    try:
        yield transaction("theirs", steps)
    except Abandoned:
        return None


def test_a_claim_that_was_rolled_back_takes_nothing(race: Race, raced: Raced) -> None:
    race(abandoned_claim(raced))


# A stale lease is taken again while its zombie finishes.


def working(raced: Raced, name: str, sub: str = "", fence: str = "attempts") -> Actor:
    """Claims, and finishes what it got under its fence; tells both."""

    def script() -> Script:
        claimed = yield raced.move("claim", sub=sub)
        if claimed is None:
            return (None, None)
        done = yield raced.move("succeed", sub=sub, fence=claimed[fence], values={"result": name})
        return (claimed[fence], done)

    return acting(name, script)


def zombie_finishes(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        row = story.run(raced.read())
        done = {"zombie": (1, story.results["zombie"])} if story.results["zombie"] else {}
        workers = [name for name in ("first", "second") if name in story.results]
        done |= {name: story.results[name] for name in workers if story.results[name][1]}
        assert len(done) == 1, f"{list(done)} all finished it"
        ((name, (fence, _)),) = done.items()
        assert (row["status"], row["result"], row["attempts"]) == ("succeeded", name, fence)

    actors = [
        doing("zombie", raced.move("succeed", fence=1, values={"result": "zombie"})),
        working(raced, "first"),
    ]
    if not raced.held:  # there they have too many orders
        actors.append(working(raced, "second"))
    setup = raced.prepared(raced.move("claim"), later(LEASE_S + 1))
    return Scenario("stale row: claim × claim × zombie", setup, actors, check)


def test_a_zombie_does_not_finish_anothers_attempt(race: Race, raced: Raced) -> None:
    race(zombie_finishes(raced))


def test_it_does_without_the_fence(turns_red: Callable[..., Violation]) -> None:
    turns_red(zombie_finishes, FENCE)


# A lease runs out, or is renewed, while others want the row.


def leases(raced: Raced) -> Scenario:
    def holder() -> Script:
        renewed = yield raced.renew(1)
        return renewed

    def claimer() -> Script:
        return (yield raced.move("claim"))

    def time_passes() -> Script:
        yield later(LEASE_S / 2 + 1)
        yield later(LEASE_S / 2 + 1)

    def check(story: Story) -> None:
        renewed, taken = story.results["holder"], story.results["claimer"]
        if taken is not None:
            leased = max(story.context, seconds(renewed["started_at"]) if renewed else 0.0)
            gap = seconds(taken["started_at"]) - leased
            assert gap >= LEASE_S, f"taken {gap:.3f} s after it was leased for {LEASE_S} s"

    def setup() -> Script:
        yield raced.rows("a")
        row = yield raced.move("claim")
        return seconds(row["started_at"])

    actors = [
        acting("holder", holder),
        acting("claimer", claimer),
        acting("time", time_passes),
    ]
    return Scenario("renew × claim as a row's lease runs out", setup, actors, check)


def test_leases_of_a_row_do_not_overlap(race: Race, raced: Raced) -> None:
    race(leases(raced))


def test_they_do_when_its_end_is_not_asked(turns_red: Callable[..., Violation], raced: Raced) -> None:
    turns_red(leases, (raced.whole().stale(MAIN), "true"))


def test_they_do_when_a_renewal_names_no_fence(turns_red: Callable[..., Violation]) -> None:
    turns_red(leases, FENCE)


# The second stage: claim × complete × reaper, while its lease runs and after it.


def boxes_live(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        row = story.run(raced.read())
        fence, done = story.results["worker"]
        assert (fence is None) == (done is None), "lost its live claim"
        assert row["status"] == "succeeded"
        assert row["boxes_attempts"] == fence
        assert row["boxes_status"] == ("pending" if fence is None else "succeeded")

    actors = [
        doing("main", raced.move("succeed_with_boxes", fence=1, values={"result": "main"})),
        working(raced, "worker", "boxes", "boxes_fence"),
        doing("reaper", raced.reap()),
    ]
    setup = raced.prepared(raced.move("claim"))
    return Scenario("sub-state: enter × claim × reaper", setup, actors, check)


def test_a_live_claim_of_a_sub_state_is_kept(race: Race, raced: Raced) -> None:
    race(boxes_live(raced))


def test_the_reaper_takes_it_when_the_leases_end_is_not_asked(
    turns_red: Callable[..., Violation], raced: Raced
) -> None:
    turns_red(boxes_live, (raced.whole().stale(BOXES), "true"))


def boxes_claimed(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        claims = [fence for fence, _ in story.results.values() if fence is not None]
        assert claims == [1], "both claimed it"
        row = story.run(raced.read())
        assert (row["boxes_status"], row["boxes_attempts"]) == ("succeeded", 1)

    actors = [working(raced, name, "boxes", "boxes_fence") for name in ("first", "second")]
    setup = raced.prepared(status="succeeded", boxes_status="pending")
    return Scenario("sub-state: claim × claim", setup, actors, check)


def test_one_of_two_claims_a_sub_state(race: Race, raced: Raced) -> None:
    race(boxes_claimed(raced))


def test_both_do_when_the_state_is_not_asked(turns_red: Callable[..., Violation]) -> None:
    turns_red(boxes_claimed, ("\"boxes_status\" = 'pending'", "true"))


def boxes_stale(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        row = story.run(raced.read())
        zombie, (fence, done) = story.results["zombie"], story.results["worker"]
        assert not (zombie and done), "both finished it"
        assert row["boxes_attempts"] == (1 if fence is None else 2)
        if zombie or done:
            assert row["boxes_status"] == "succeeded"
            assert row["result"] == ("zombie" if zombie else "worker")
            assert row["boxes_fence"] == (1 if zombie else fence)
        else:
            assert (row["boxes_status"], fence) == ("pending", None), "done by nobody, and held by nobody"

    actors = [
        doing("zombie", raced.move("succeed", sub="boxes", fence=1, values={"result": "zombie"})),
        working(raced, "worker", "boxes", "boxes_fence"),
        doing("reaper", raced.reap()),
    ]
    setup = raced.prepared(
        raced.move("claim", sub="boxes"), later(LEASE_S + 1), status="succeeded", boxes_status="pending"
    )
    return Scenario("stale sub-state: claim × zombie × reaper", setup, actors, check)


def test_a_stale_sub_state_is_done_once(race: Race, raced: Raced) -> None:
    race(boxes_stale(raced))


def test_a_zombie_does_it_too_without_the_fence(turns_red: Callable[..., Violation]) -> None:
    turns_red(boxes_stale, BOXES_FENCE)


# Taking many at once.


def takers(raced: Raced) -> Scenario:
    def setup() -> Script:
        yield raced.rows("a", "b")

    def check(story: Story) -> None:
        taken = [row["id"] for name in ("first", "second") for row in story.results[name]]
        cancelled = ["a"] if story.results.get("canceller") else []
        assert len({*taken, *cancelled}) == len(taken) + len(cancelled), f"{taken} and {cancelled}"
        assert story.waited <= {"canceller"}, "a taker waited for a row instead of leaving it out"

    actors = [
        doing("first", raced.take("claim", 2)),
        doing("second", raced.take("claim", 2)),
    ]
    if not raced.held:
        actors.append(doing("canceller", raced.move("cancel")))
    return Scenario("take × take × cancel of rows", setup, actors, check)


def test_no_row_is_taken_twice(race: Race, raced: Raced) -> None:
    race(takers(raced))


def test_it_is_when_no_statement_asks_for_the_state(turns_red: Callable[..., Violation]) -> None:
    """It is asked for twice on purpose: where rows are chosen and locked, and where they are changed."""
    turns_red(takers, QUEUED)


# The reason of a refusal.


def reasons(raced: Raced) -> Scenario:
    def check(story: Story) -> None:
        answer = story.results["canceller"]
        if isinstance(answer, Refusal):
            assert answer.reason == "state" and answer.state in ("running", "succeeded"), answer

    actors = [
        doing("canceller", raced.why("cancel")),
        doing("worker", raced.move("claim"), raced.move("succeed", fence=1)),
    ]
    return Scenario("refused cancel × claim × success of a row", raced.prepared(), actors, check)


def test_a_refusal_tells_what_was_once_so(race: Race, raced: Raced) -> None:
    race(reasons(raced))


# A move made on behalf of a job's attempt, while the job goes to a newer one.


def by_attempt(raced: Raced) -> Scenario:
    def setup() -> Script:
        yield raced.rows("a")
        yield from with_running()()

    def newer() -> Script:
        yield requeue(FIRST, 1, "released")
        claimed = yield claim(SECOND)
        row = yield raced.read()
        return (claimed, row["status"])

    def check(story: Story) -> None:
        claimed, seen = story.results["newer"]
        row = story.run(raced.read())
        # A release leaves out a job that the move holds locked, and comes back to it later: then nobody claimed.
        assert not claimed or row["status"] == seen, "the stale attempt moved the row under the newer one"
        moved = not isinstance(story.results["zombie"], LeaseLost)
        assert row["status"] == ("cancelled" if moved else "queued")

    actors = [
        doing("zombie", raced.move_in_job("cancel", holder=FIRST, attempt=1)),
        acting("newer", newer),
    ]
    return Scenario("move of an attempt × newer attempt", setup, actors, check)


@named(8)
def test_a_stale_attempt_moves_nothing_under_a_newer_one(race: Race, raced: Raced) -> None:
    race(by_attempt(raced))


@named(8)
def test_it_does_when_its_job_is_not_held(race: Race, raced: Raced) -> None:
    race.turns_red(
        by_attempt(raced),
        Cut(
            "hold_fence",
            ("AND job.holder = CAST(:holder AS uuid)\n  AND job.attempt = CAST(:attempt AS bigint)", ""),
            ("AND job.holder = :holder\n  AND job.attempt = :attempt", ""),
        ),
    )


@in_modes("plain", "held")
@named(8)
def test_it_does_when_its_job_is_read_and_not_locked(race: Race, raced: Raced) -> None:
    race.turns_red(by_attempt(raced), Cut("hold_fence", ("FOR SHARE", "")))


# The lease of an attempt that failed, and who gets it.

ELSE = uid(77)  # another job
OLDER = ("AND fencerow_left.attempt < ", "AND 0 < ")
OWN_JOB = ("fencerow_left.job_id = ", "fencerow_left.job_id <= ")  # that of ELSE is the greater
SAME_LEASE = ('AND fencerow_left.fence = "raced_extractions"."attempts"', "")


def left_behind(raced: Raced) -> Scenario:
    """Attempt 1 has claimed the row and lost its job. It wakes up, attempt 2 goes on, and another job wants it."""

    def zombie() -> Script:
        ended = yield raced.move("succeed", fence=1)
        again = yield raced.claim_by(1)
        return (ended, again)

    def newer() -> Script:
        claimed = yield raced.claim_by(2)
        if claimed is None:
            return (None, None)
        return (claimed, (yield raced.move("succeed", fence=claimed["attempts"])))

    def check(story: Story) -> None:
        ended, again = story.results["zombie"]
        claimed, done = story.results["newer"]
        assert story.results["stranger"] is None, "another job got a row whose lease runs"
        assert again is None, "an older attempt took it back"
        assert (ended is None) is (claimed is not None), "one of them goes on with it"
        assert (done is None) is (claimed is None), "the newer attempt lost its own lease"
        assert story.run(raced.read())["status"] == "succeeded"

    actors = [
        acting("zombie", zombie),
        acting("newer", newer),
        doing("stranger", raced.claim_by(9, ELSE)),
    ]
    return Scenario(
        "row of a failed attempt: next × zombie × another job",
        raced.prepared(raced.claim_by(1)),
        actors,
        check,
    )


def test_the_next_attempt_goes_on_with_the_row(race: Race, raced: Raced) -> None:
    race(left_behind(raced))


def test_without_the_job_anybody_gets_it(turns_red: Callable[..., Violation]) -> None:
    turns_red(left_behind, OWN_JOB)


def test_without_the_attempts_a_zombie_takes_it_back(turns_red: Callable[..., Violation]) -> None:
    turns_red(left_behind, OLDER)


def claimed_since(raced: Raced) -> Scenario:
    """It was given back and another has claimed it meanwhile, who is no job's and so left no line."""

    def stranger() -> Script:
        yield raced.move("requeue", fence=1)
        claimed = yield raced.move("claim")
        if claimed is None:
            return None
        return (claimed, (yield raced.move("succeed", fence=claimed["attempts"])))

    def check(story: Story) -> None:
        got = story.results["stranger"]
        assert got is None or got[1] is not None, "the lease of another was taken over while it ran"

    actors = [acting("stranger", stranger), doing("newer", raced.claim_by(2))]
    return Scenario(
        "row of a failed attempt, claimed by another × next", raced.prepared(raced.claim_by(1)), actors, check
    )


def test_who_has_claimed_it_since_keeps_it(race: Race, raced: Raced) -> None:
    race(claimed_since(raced))


def test_without_the_fence_it_is_taken_from_whoever_has_it(turns_red: Callable[..., Violation]) -> None:
    turns_red(claimed_since, SAME_LEASE)
