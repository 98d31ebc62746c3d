"""Races for a mutex: takers, stale takeovers, zombies who renew, release and write, operators, attempts of a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from fencerow.core.store import store
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Statement, Steps
from fencerow.errors import LeaseLost, StaleToken
from fencerow.guards.mutex import mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow.operators import looking
from fencerow_proof.arena.actor import Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import FIRST, JOB, LEASE_S, SECOND, acting, die, reclaim, uid, with_running

KEY = "k"
STALE_S = 30.0
OLD, NEW, THIRD = uid(201), uid(202), uid(203)  # who holds the mutex


def taker(holder: str, attempt: int | None = None) -> MutexTaker:
    job = JOB if attempt is not None else None
    return MutexTaker(KEY, holder, STALE_S, "host", 1, None, job, attempt, "send" if job else None)


def taking(holder: str) -> Script:
    """What a mutex does when it is taken: the row that is there, or one that is made."""
    token = yield mutexes.take(taker(holder))
    if token is None and (yield mutexes.look(KEY)) is None:
        token = yield mutexes.make(taker(holder))
        if token is None:
            token = yield mutexes.take(taker(holder))
    return token


def held_by_old() -> Script:
    yield mutexes.make(taker(OLD))


def stale() -> Script:
    """The old holder was paused for longer than its time, and does not know."""
    yield from held_by_old()
    yield later(STALE_S + 1)


def given_back() -> Script:
    yield from held_by_old()
    yield mutexes.release(KEY, holder=OLD, token=1)


def takes(name: str, holder: str) -> Actor:
    return acting(name, partial(taking, holder))


def releases() -> Actor:
    return doing("old", mutexes.release(KEY, holder=OLD, token=1))


def standing(story: Story) -> mutexes.MutexRecord:
    found = story.run(mutexes.look(KEY))
    assert found is not None, "the row is gone"
    return found


# --- takers ------------------------------------------------------------------------------------------------


def one_wins(story: Story) -> None:
    tokens = {NEW: story.results["new"], THIRD: story.results["third"]}
    winners = [holder for holder, token in tokens.items() if token is not None]

    assert len(winners) == 1, f"{len(winners)} hold it at once"
    assert (standing(story).holder, standing(story).token) == (winners[0], tokens[winners[0]])


def nobody_else(story: Story) -> None:
    assert story.results["new"] is None and story.results["third"] is None
    assert (standing(story).holder, standing(story).token) == (OLD, 1)


def two_takers(name: str, setup: Callable[[], Script], check: Callable[[Story], None] = one_wins) -> Scenario:
    return Scenario(f"two takers, {name}", setup, [takes("new", NEW), takes("third", THIRD)], check)


def nothing() -> Script:
    yield from ()


FREE = two_takers("free", given_back)
FIRST_EVER = two_takers("never taken", nothing)
STALE = two_takers("stale", stale)
FRESH = two_takers("held", held_by_old, nobody_else)


@pytest.mark.parametrize("scenario", [FREE, FIRST_EVER, STALE, FRESH], ids=lambda each: each.name)
def test_one_of_two_takers_gets_it(race: Race, scenario: Scenario) -> None:
    race(scenario)


WHOLE = ("open.until <= (SELECT fencerow.now())", "until <= fencerow.now()")


def test_a_fresh_one_is_stolen_without_the_look_at_the_time(race: Race) -> None:
    race.turns_red(FRESH, Cut("take_mutex", (WHOLE[0], "true"), (WHOLE[1], "true")))


def test_and_without_the_look_at_its_holder(race: Race) -> None:
    race.turns_red(FRESH, Cut("take_mutex", ("open.holder IS NULL", "true"), ("(holder IS NULL", "(true")))


UNLOCKED = Cut("take_mutex", ("FOR UPDATE SKIP LOCKED", ""))


@in_modes("held")
def test_two_take_it_when_the_row_is_not_locked_first(race: Race) -> None:
    race.turns_red(FREE, UNLOCKED)


# --- the zombie ---------------------------------------------------------------------------------------------


def zombie_frees_nobodys(story: Story) -> None:
    got = [token for token in (story.results["new"], story.results["third"]) if token is not None]
    assert len(got) == 1, f"{len(got)} hold it at once"
    assert got == [2]
    assert standing(story).is_held


takeover_release = Scenario(
    "stale takeover × zombie release × take",
    stale,
    [releases(), takes("new", NEW), takes("third", THIRD)],
    zombie_frees_nobodys,
)
BY_TAKE = (
    "\n  AND mutex.holder = CAST(:holder AS uuid)\n  AND mutex.token = CAST(:token AS bigint)",
    "\n  AND holder = :holder\n  AND token = :token",
)


def test_a_late_release_never_frees_the_next_holder(race: Race) -> None:
    race(takeover_release)


def test_it_does_when_it_names_neither_holder_nor_token(race: Race) -> None:
    race.turns_red(takeover_release, Cut("release_mutex", (BY_TAKE[0], ""), (BY_TAKE[1], "")))


def one_keeps_it(story: Story) -> None:
    renewed, token = story.results["old"], story.results["new"]
    assert not (renewed and token), "it was renewed and taken over"
    assert renewed or token
    assert standing(story).holder == (NEW if token else OLD)


renew_takeover = Scenario(
    "late renewal × takeover",
    stale,
    [doing("old", mutexes.renew(KEY, holder=OLD, token=1)), takes("new", NEW)],
    one_keeps_it,
)


def test_a_late_renewal_or_the_takeover_wins(race: Race) -> None:
    race(renew_takeover)


def test_a_renewal_prolongs_the_next_holders_without_its_guards(race: Race) -> None:
    race.turns_red(renew_takeover, Cut("renew_mutex", (BY_TAKE[0], ""), (BY_TAKE[1], "")))


@in_modes("held")
def test_a_renewed_one_is_taken_over_when_the_row_is_not_locked_first(race: Race) -> None:
    race.turns_red(renew_takeover, UNLOCKED)


def the_operator_meant_the_old(story: Story) -> None:
    freed, token = story.results["operator"], story.results["new"]
    if token is None:
        assert freed, "it was neither taken nor freed"
    else:
        assert standing(story).holder == NEW, "the operator freed the next holder's"


freed_takeover = Scenario(
    "stale takeover × an operator frees the old",
    stale,
    [doing("operator", mutexes.free(KEY, token=1, actor="ann", reason=None)), takes("new", NEW)],
    the_operator_meant_the_old,
)


def test_an_operator_frees_only_what_was_seen(race: Race) -> None:
    race(freed_takeover)


def test_it_frees_the_next_holders_without_the_token(race: Race) -> None:
    race.turns_red(
        freed_takeover,
        Cut(
            "free_mutex", ("  AND mutex.token = CAST(:token AS bigint)\n", ""), ("\n  AND token = :token", "")
        ),
    )


def nobody_holds_what_was_lost(story: Story) -> None:
    """The answer of a take was lost: it is taken again, and given back by the id of the take."""
    token = story.results["new"]
    assert standing(story).holder in ((THIRD,) if story.results["third"] else (None, NEW))
    if story.results["third"]:
        assert story.results["third"] > (token or 0)


lost_answer = Scenario(
    "a take whose answer was lost × take",
    given_back,
    [
        doing("new", mutexes.take(taker(NEW)), mutexes.take(taker(NEW)), mutexes.abandon(KEY, holder=NEW)),
        takes("third", THIRD),
    ],
    nobody_holds_what_was_lost,
)


def test_a_lost_answer_blocks_nobody(race: Race) -> None:
    race(lost_answer)


def test_an_abandoned_take_frees_another_without_its_guard(race: Race) -> None:
    race.turns_red(
        lost_answer,
        Cut(
            "abandon_mutex",
            ("\n  AND mutex.holder = CAST(:holder AS uuid)", ""),
            ("\n  AND holder = :holder", ""),
        ),
    )


# --- guarded writes -----------------------------------------------------------------------------------------

WRITE = {
    "postgres": "INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message) "
    "VALUES (CAST(:id AS uuid), CAST(:token AS bigint), fencerow.now(), 'info', '') RETURNING id",
    "sqlite": "INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message) "
    "VALUES (:id, :token, fencerow.now(), 'info', '') RETURNING id",
}


class Writes:
    """The user's own writes, in a transaction that begins with a guard."""

    def __init__(self, race: Race) -> None:
        dialect = "sqlite" if race.mode == "sqlite" else "postgres"
        composed = race._queries.composed("write", WRITE[dialect])
        self._query = Query("write", composed.statements, composed.parameters)

    def guarded(self, token: int) -> Operation[bool]:
        def steps() -> Steps[bool]:
            if not (yield from mutexes.guard(KEY, token=token).steps()):
                raise StaleToken(f"token {token}")
            yield Statement("write", {"id": JOB, "token": token}, self._query)
            return True

        return transaction("guarded write", steps)

    def writes(self, token: int) -> Script:
        try:
            return (yield self.guarded(token))
        except StaleToken:
            return False

    def takes_and_writes(self, holder: str) -> Script:
        token = yield from taking(holder)
        if token is not None:
            yield from self.writes(token)
        return token


def takes_and_releases(holder: str) -> Script:
    token = yield mutexes.take(taker(holder))
    if token is not None:
        yield mutexes.release(KEY, holder=holder, token=token)
    return token


def never_back(story: Story) -> None:
    """What was written stands in the order of the tokens: nobody wrote after a later holder had begun to."""
    tokens = [line.attempt for line in story.run(looking.logs(JOB))]
    assert tokens == sorted(tokens), f"written under the tokens {tokens}"
    got = [story.results[name] for name in ("new", "third") if story.results.get(name)]
    assert len(got) == len(set(got)), "two holders have one token"
    assert 1 not in got, "the token began anew"


def guarded_takeover(race: Race) -> Scenario:
    writes = Writes(race)
    return Scenario(
        "guarded write of a zombie × takeover and guarded write",
        stale,
        [acting("old", lambda: writes.writes(1)), acting("new", lambda: writes.takes_and_writes(NEW))],
        never_back,
    )


def guarded_release(race: Race) -> Scenario:
    """The block is left while its transaction is open: it is committed before the next holder begins."""
    writes = Writes(race)
    return Scenario(
        "guarded write × release of it × take and guarded write",
        held_by_old,
        [
            acting("old", lambda: writes.writes(1)),
            doing("block", mutexes.release(KEY, holder=OLD, token=1)),
            acting("new", lambda: writes.takes_and_writes(NEW)),
        ],
        never_back,
    )


def two_takeovers(race: Race) -> Scenario:
    writes = Writes(race)
    return Scenario(
        "guarded write of a zombie × take, release × take, write",
        stale,
        [
            acting("old", lambda: writes.writes(1)),
            acting("new", lambda: takes_and_releases(NEW)),
            acting("third", lambda: writes.takes_and_writes(THIRD)),
        ],
        never_back,
    )


SCENARIOS = [guarded_takeover, guarded_release, two_takeovers]


@pytest.mark.parametrize("made", SCENARIOS, ids=lambda made: made.__name__)
def test_guarded_writes_stand_in_the_order_of_the_tokens(
    race: Race, made: Callable[[Race], Scenario]
) -> None:
    race(made(race))


def test_a_zombie_writes_after_its_successor_without_the_token(race: Race) -> None:
    race.turns_red(
        guarded_takeover(race),
        Cut(
            "guard_mutex",
            ("\n  AND mutex.token = CAST(:token AS bigint)", ""),
            ("\n  AND token = :token", ""),
        ),
    )


@in_modes("plain", "held")
def test_and_when_the_guard_locks_nothing(race: Race) -> None:
    race.turns_red(guarded_takeover(race), Cut("guard_mutex", ("FOR KEY SHARE", "")))


@in_modes("plain", "held")
def test_and_when_a_take_passes_the_lock_of_a_guard(race: Race) -> None:
    race.turns_red(
        guarded_takeover(race),
        Cut("take_mutex", ("FOR UPDATE SKIP LOCKED", "FOR NO KEY UPDATE SKIP LOCKED")),
    )


def test_a_token_begins_anew_when_a_release_deletes_the_row(race: Race) -> None:
    race.turns_red(
        two_takeovers(race),
        Cut(
            "release_mutex",
            (
                "UPDATE fencerow.mutexes AS mutex\nSET holder = NULL, until = fencerow.now()\n",
                "DELETE FROM fencerow.mutexes AS mutex\n",
            ),
            (
                "UPDATE fencerow.mutexes\nSET holder = NULL, until = fencerow.now()\n",
                "DELETE FROM fencerow.mutexes\n",
            ),
        ),
    )


# --- attempts of a job --------------------------------------------------------------------------------------


def first_is_dead() -> Script:
    """The first attempt runs on although its worker was declared dead. The mutex is free."""
    yield from with_running()()
    yield from given_back()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def in_job(holder: str, worker: str, attempt: int) -> Operation[int | None]:
    fence = partial(store.hold_fence, JOB, holder=worker, attempt=attempt)
    return mutexes.take_in_job(taker(holder, attempt), fence, defers=True)


LATER = "later"  # the zombie's transaction had the job's row just then: the next sweep takes the job back


def zombie_takes() -> Script:
    try:
        return (yield in_job(OLD, FIRST, 1))
    except LeaseLost:
        return "lost"


def next_attempt_takes() -> Script:
    yield reclaim(FIRST)
    for job in (yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)):
        token = yield in_job(NEW, SECOND, job.attempt)
        if token is not None:
            yield mutexes.release(KEY, holder=NEW, token=token)
        return token
    return LATER


def the_newest_attempt_has_it(story: Story) -> None:
    zombie, token = story.results["zombie"], story.results["next"]
    if token == LATER:
        return
    assert token is not None, "the next attempt waited for the last one of its own job"
    assert zombie in ("lost", None) or zombie < token, "a stale attempt took it after the newest"


stale_attempt = Scenario(
    "take of a stale attempt × reclaim, claim, take, release",
    first_is_dead,
    [acting("zombie", zombie_takes), acting("next", next_attempt_takes)],
    the_newest_attempt_has_it,
)


def test_a_stale_attempt_takes_nothing_and_its_next_waits_for_nothing(race: Race) -> None:
    race(stale_attempt)


UNFENCED = (
    Cut(
        "hold_fence",
        ("\n  AND job.state IS NOT DISTINCT FROM 'running'", ""),
        ("\n  AND job.state = 'running'", ""),
    ),
    Cut(
        "hold_fence",
        ("\n  AND job.holder = CAST(:holder AS uuid)", ""),
        ("\n  AND job.holder = :holder", ""),
    ),
    Cut(
        "hold_fence",
        ("\n  AND job.attempt = CAST(:attempt AS bigint)", ""),
        ("\n  AND job.attempt = :attempt", ""),
    ),
)


def test_a_stale_attempt_takes_it_without_the_fence(race: Race) -> None:
    race.turns_red(
        stale_attempt,
        *UNFENCED,
    )


def test_the_next_attempt_waits_without_its_right(race: Race) -> None:
    race.turns_red(
        stale_attempt,
        Cut(
            "take_mutex",
            ("OR (open.job_id = CAST(:job_id AS uuid) AND open.attempt < CAST(:attempt AS bigint))", ""),
            ("OR (job_id = :job_id AND attempt < :attempt)", ""),
        ),
    )


def renews_in_job() -> Script:
    fence = partial(store.hold_fence, JOB, holder=FIRST, attempt=1)
    return (yield mutexes.renew_in_job(KEY, fence, holder=OLD, token=2))


def held_by_the_zombie() -> Script:
    yield from with_running()()
    yield from given_back()
    yield in_job(OLD, FIRST, 1)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def after_the_sweep() -> Script:
    """The attempt's time is over, and after the mutex's own somebody else wants it."""
    reclaimed, _ = yield reclaim(FIRST)
    if not reclaimed:
        return LATER
    yield later(STALE_S + 1)
    return (yield mutexes.take(taker(THIRD)))


def nobody_keeps_it_for_a_dead_attempt(story: Story) -> None:
    assert story.results["third"] in (3, LATER), "a renewal kept it although the attempt was over"


zombie_renewal = Scenario(
    "renewal of a stale attempt × reclaim, take of a stranger",
    held_by_the_zombie,
    [acting("zombie", renews_in_job), acting("third", after_the_sweep)],
    nobody_keeps_it_for_a_dead_attempt,
)


def test_a_stale_attempt_keeps_nothing(race: Race) -> None:
    race(zombie_renewal)


def test_it_does_without_the_fence(race: Race) -> None:
    race.turns_red(zombie_renewal, *UNFENCED)


# --- rows that are forgotten after long disuse ---------------------------------------------------------------

AGE_S = 30 * 86_400.0


def forgotten() -> Scenario:
    """The key was taken three times and lies unused; it is purged while somebody takes it again."""

    def setup() -> Script:
        yield mutexes.make(taker(OLD))
        for holder in (THIRD, OLD):
            yield later(STALE_S + 1)
            yield mutexes.take(taker(holder))
        yield later(AGE_S + STALE_S + 1)

    def check(story: Story) -> None:
        token = story.results["new"]
        if token is None:
            token = story.run(mutexes.make(taker(NEW)))
        assert token > 3, f"token {token} after 3"
        assert standing(story).token == token
        assert standing(story).holder == NEW, "it was forgotten while it was held"

    return Scenario(
        "purge of an unused mutex × take",
        setup,
        [doing("purge", mutexes.purge("", age_s=AGE_S, limit=10)), takes("new", NEW)],
        check,
    )


def test_a_token_never_goes_back_though_its_row_was_forgotten(race: Race) -> None:
    race(forgotten())


def test_it_does_without_the_floor(race: Race) -> None:
    race.turns_red(
        forgotten(),
        Cut(
            "make_mutex",
            ("fencerow.mutex_floor AS floor), 0)", "fencerow.mutex_floor AS floor WHERE false), 0)"),
            ("fencerow.mutex_floor AS floor), 0)", "fencerow.mutex_floor AS floor WHERE false), 0)"),
        ),
        Cut(
            "lift_mutex",
            ("mutex.token <= floor.token", "false"),
            ("mutexes.token <= floor.token", "mutexes.token < 0"),
        ),
    )


def made_meanwhile() -> Scenario:
    """In a job a row is made without a look before: it may be asked for before the purge of the key is committed."""
    scenario = forgotten()
    return Scenario(
        "purge of an unused mutex × make",
        scenario.setup,
        [scenario.actors[0], doing("new", mutexes.make(taker(NEW)))],
        lambda story: scenario.check(story) if story.results["new"] is not None else None,
    )


def test_nor_when_it_is_made_anew_meanwhile(race: Race) -> None:
    race(made_meanwhile())


@in_modes("held")
def test_it_does_where_the_floor_is_read_too_early(race: Race) -> None:
    """By the statement that makes the row alone: its snapshot is older than the purge."""
    race.turns_red(made_meanwhile(), Cut("lift_mutex", ("mutex.token <= floor.token", "false")))
