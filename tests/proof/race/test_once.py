"""Races for keys that are taken once, with an owner that dies, and for windows, with an enqueue that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.core.store.running import Running
from fencerow.db.run import Operation, Steps
from fencerow.errors import LeaseLost
from fencerow.guards.once.reserving import OnceKey, Reserved, Turn, end_once, release_once, reserve_once
from fencerow.guards.once.window import Admitted, admit, purge_windows, withdraw_admitted
from fencerow_proof.arena.actor import Abandoned, Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race import users
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    die,
    reclaim,
    register,
    uid,
    with_running,
)
from tests.proof.race.users import Users

STALE_S = 60.0
WINDOW_S = 5.0


@pytest.fixture(scope="session", autouse=True)
def _tables(arenas: Mapping[str, Any]) -> Iterator[None]:
    yield from users.made(arenas)


@pytest.fixture
def mine(race: Race) -> Users:
    return Users(race.mode)


def key(owner: str, attempt: int | None = None, *, payload: str = "p") -> OnceKey:
    return OnceKey("s", "k", owner, attempt, payload, STALE_S, 3600.0)


def token(who: int) -> str:
    return uid(400 + who)


def doing_once(
    mine: Users | None, name: str, who: int, owner: str | None = None, attempt: int | None = None
) -> Actor:
    """Take the key, do it (where somebody counts), say so; returns what came of the taking and of the saying."""

    def script(_: Any) -> Script:
        wanted = key(owner or name, attempt)
        taken: Reserved = yield reserve_once(wanted, token(who))
        if taken.turn is not Turn.MINE:
            return taken, None
        if mine is not None:
            yield mine.effect(name)
        return taken, (yield end_once(wanted, token(who), f'"{name}"'))

    return Actor(name, script)


def told(story: Story) -> dict[str, tuple[Reserved, bool | None]]:
    """What each of them was told; an error of one of them is a fault."""
    found = {name: result for name, result in story.results.items() if name != "time"}
    for name, result in found.items():
        assert isinstance(result, tuple), f"{name} met {result!r}"
    return found


def result_of(story: Story) -> str | None:
    """What somebody who comes after all is told."""
    taken: Reserved = story.run(reserve_once(key("afterwards"), token(99)))
    assert taken.turn is Turn.DONE, f"afterwards: {taken}"
    return taken.result


# --- two callers -------------------------------------------------------------------------------------------


def two_callers(mine: Users) -> Scenario:
    def check(story: Story) -> None:
        effects = mine.effects(story)
        assert len(effects) == 1, f"done {len(effects)} times"
        winner = effects[0]
        for name, (taken, ended) in told(story).items():
            assert (taken.turn is Turn.MINE, ended) == ((True, True) if name == winner else (False, None))
            if taken.turn is Turn.DONE:
                assert taken.result == f'"{winner}"'
        assert result_of(story) == f'"{winner}"'

    return Scenario(
        "once × once",
        lambda: iter_clear(mine),
        [doing_once(mine, "first", 1), doing_once(mine, "second", 2)],
        check,
    )


def iter_clear(mine: Users) -> Script:
    yield mine.clear()


def test_it_is_done_once(race: Race, mine: Users) -> None:
    race(two_callers(mine))


def test_without_the_guard_it_is_done_twice(race: Race, mine: Users) -> None:
    """On SQLite the look before it sees the same, since nobody comes in between; there both are taken out."""
    guard = "AND (known.until <= fencerow.now()\n"
    race.turns_red(
        two_callers(mine),
        Cut("reserve_once", (guard, "AND (true\n"), (guard, "AND (true\n")),
        Cut("read_once", None, ("WHERE known.scope", "WHERE false AND known.scope")),
    )


@in_modes("plain", "held")
def test_without_the_later_look_the_loser_finds_nobody(race: Race, mine: Users) -> None:
    """An answer read by the taking statement itself would be older than the winner's commit."""
    race.turns_red(two_callers(mine), Cut("read_once", ("WHERE known.scope", "WHERE false AND known.scope")))


def test_marked_after_the_effect_it_is_done_twice(race: Race, mine: Users) -> None:
    """The order that teams begin with: look, do, remember."""

    def script(who: int, name: str) -> Callable[[Any], Script]:
        def steps(_: Any) -> Script:
            yield mine.effect(name)
            taken: Reserved = yield reserve_once(key(name), token(who))
            if taken.turn is not Turn.MINE:
                return taken, None
            return taken, (yield end_once(key(name), token(who), f'"{name}"'))

        return steps

    scenario = two_callers(mine)
    race.turns_red(
        Scenario(
            "once × once, marked after the effect",
            scenario.setup,
            [Actor("first", script(1, "first")), Actor("second", script(2, "second"))],
            scenario.check,
        ),
        Cut("reserve_once", ("RETURNING owner", "RETURNING  owner"), ("RETURNING owner", "RETURNING  owner")),
    )


# --- an owner that dies --------------------------------------------------------------------------------------


def dead_owner() -> Scenario:
    """Job 1 took the key and died. Its rerun, another job, and time that passes; a zombie may end what it took."""

    def setup() -> Script:
        yield reserve_once(key("job:1", 1), token(0))

    def check(story: Story) -> None:
        answers = told(story)
        ended = [name for name, (_, said) in answers.items() if said]
        assert len(ended) == 1, f"{ended} ended it"
        assert result_of(story) == f'"{ended[0]}"', "a zombie's result stands there"
        assert answers["again"][0].turn is Turn.MINE or ended == ["other"], "a duplicate of itself"

    def time(_: Any) -> Script:
        yield later(STALE_S + 1)

    return Scenario(
        "once, its owner dead × its rerun × another × time",
        setup,
        [
            doing_once(None, "again", 1, "job:1", 2),
            doing_once(None, "other", 2, "job:2", 1),
            Actor("time", time),
        ],
        check,
    )


def test_a_crashed_run_is_no_duplicate_of_itself(race: Race, mine: Users) -> None:
    race(dead_owner())


def test_without_the_owner_it_is(race: Race, mine: Users) -> None:
    guard = "OR known.owner = EXCLUDED.owner AND known.attempt < EXCLUDED.attempt\n"
    race.turns_red(
        dead_owner(), Cut("reserve_once", (guard, "\n"), (guard.replace("EXCLUDED", "excluded"), "\n"))
    )


def test_without_the_token_a_zombie_ends_what_another_took(race: Race, mine: Users) -> None:
    race.turns_red(
        dead_owner(),
        Cut("end_once", ("AND token = CAST(:token AS uuid)", ""), ("AND token = :token", "")),
    )


# --- twice in one attempt, and in an older one ---------------------------------------------------------------


def side_by_side(mine: Users) -> Scenario:
    """Two tasks of one attempt; a third run of the owner says which of them did it."""

    def check(story: Story) -> None:
        effects = mine.effects(story)
        assert len(effects) == 1, f"done {len(effects)} times in one attempt"
        for name, (taken, ended) in told(story).items():
            assert (taken.turn is Turn.MINE, ended) == ((True, True) if name == effects[0] else (False, None))
        assert result_of(story) == f'"{effects[0]}"'

    return Scenario(
        "once × once in one attempt",
        lambda: iter_clear(mine),
        [doing_once(mine, "first", 1, "job:1", 1), doing_once(mine, "second", 2, "job:1", 1)],
        check,
    )


def test_side_by_side_in_one_attempt_it_is_done_once(race: Race, mine: Users) -> None:
    race(side_by_side(mine))


def test_it_is_done_twice_where_the_owner_alone_counts(race: Race, mine: Users) -> None:
    """On SQLite the look before it sees the same; there that is taken out too."""
    newer = "known.owner = EXCLUDED.owner AND known.attempt < EXCLUDED.attempt"
    owned = "known.owner = EXCLUDED.owner"
    race.turns_red(
        side_by_side(mine),
        Cut(
            "reserve_once",
            (newer, owned),
            (newer.replace("EXCLUDED", "excluded"), owned.replace("EXCLUDED", "excluded")),
        ),
        Cut("read_once", None, ("WHERE known.scope", "WHERE false AND known.scope")),
    )


def older_attempt(mine: Users) -> Scenario:
    """The owner's second run has the key and is slow; its first one, long given up, wakes up and asks."""

    def setup() -> Script:
        yield mine.clear()
        yield reserve_once(key("job:1", 2), token(0))
        yield later(STALE_S + 1)

    def check(story: Story) -> None:
        taken, _ = story.results["zombie"]
        assert taken.turn is not Turn.MINE, "an older attempt took the key from a newer one"
        assert story.results["newer"] is True

    return Scenario(
        "once of an older attempt × end of the newer one's",
        setup,
        [
            doing_once(None, "zombie", 1, "job:1", 1),
            doing("newer", end_once(key("job:1", 2), token(0), '"newer"')),
        ],
        check,
    )


def test_an_older_attempt_takes_nothing_from_a_newer_one(race: Race, mine: Users) -> None:
    race(older_attempt(mine))


@in_modes("plain", "held")
def test_it_does_where_only_the_lease_counts(race: Race, mine: Users) -> None:
    """The look is taken out too: it sees the same, where nobody comes in between."""
    guard = "AND (known.owner = EXCLUDED.owner AND known.attempt > EXCLUDED.attempt) IS NOT TRUE"
    race.turns_red(
        older_attempt(mine),
        Cut("reserve_once", (guard, "")),
        Cut("read_once", ("WHERE known.scope", "WHERE false AND known.scope")),
    )


def failing(mine: Users) -> Scenario:
    """The first was paused beyond its lease and fails: what it gives back must not be another's."""

    def setup() -> Script:
        yield mine.clear()
        yield reserve_once(key("first"), token(0))
        yield later(STALE_S + 1)

    def check(story: Story) -> None:
        assert story.results["second"][1] is True, "its key was given back while it worked"
        assert result_of(story) == '"second"'

    return Scenario(
        "release of a zombie × once",
        setup,
        [doing("first", release_once("s", "k", token(0))), doing_once(mine, "second", 2)],
        check,
    )


def test_a_zombie_gives_back_only_its_own(race: Race, mine: Users) -> None:
    race(failing(mine))


def test_without_the_token_it_gives_back_anothers(race: Race, mine: Users) -> None:
    race.turns_red(
        failing(mine),
        Cut("release_once", ("AND token = CAST(:token AS uuid)", ""), ("AND token = :token", "")),
    )


# --- in a job ------------------------------------------------------------------------------------------------


def attempt(holder: str, number: int) -> Running:
    return Running(JOB, "send", "mail", holder, number, 0, store.hold_fence)


def stale_attempt(mine: Users) -> Scenario:
    """The first attempt was given up and runs on; the second one is the job's own rerun. One of them does it."""

    def setup() -> Script:
        yield mine.clear()
        yield from with_running()()
        yield register(SECOND)
        yield later(LEASE_S + 1)
        yield store.renew(holder=SECOND)
        yield die(SECOND)
        yield reclaim(FIRST)

    def old(_: Any) -> Script:
        try:
            taken = yield reserve_once(key("job"), token(1), attempt(FIRST, 1))
        except LeaseLost:
            return "lost"
        return taken

    def new(_: Any) -> Script:
        yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
        taken: Reserved = yield reserve_once(key("job"), token(2), attempt(SECOND, 2))
        yield mine.effect("new")
        return taken, (yield end_once(key("job"), token(2), '"new"'))

    def check(story: Story) -> None:
        assert story.results["old"] == "lost", "a stale attempt took the key from its own job's newer one"
        assert story.results["new"][1] is True

    return Scenario(
        "once in a stale attempt × once in the newer one",
        setup,
        [Actor("old", old), Actor("new", new)],
        check,
    )


def test_a_stale_attempt_takes_nothing(race: Race, mine: Users) -> None:
    race(stale_attempt(mine))


# --- windows -------------------------------------------------------------------------------------------------


def posting(mine: Users, name: str, who: int, *, fails: bool = False) -> Actor:
    """Admit, enqueue, and take the admission back if that fails."""

    def script(_: Any) -> Script:
        admitted: Admitted = yield admit("posts", "k", name, token(who), window_s=WINDOW_S)
        if not admitted.is_new:
            return admitted.value
        if fails:
            yield withdraw_admitted("posts", "k", admitted.token)
            return "failed"
        yield mine.effect(name)
        return name

    return Actor(name, script)


def posts(mine: Users) -> Scenario:
    def check(story: Story) -> None:
        enqueued = mine.effects(story)
        assert story.results["second"] in (*enqueued, "first")
        later_one: Admitted = story.run(admit("posts", "k", "third", token(3), window_s=WINDOW_S))
        assert later_one.is_new is not bool(enqueued), (
            "the next one is new where nothing was enqueued, and only there"
        )

    return Scenario(
        "window × window, the first one's enqueue fails",
        lambda: iter_clear(mine),
        [posting(mine, "first", 1, fails=True), posting(mine, "second", 2)],
        check,
    )


def two_posts(mine: Users) -> Scenario:
    def check(story: Story) -> None:
        assert len(mine.effects(story)) == 1
        assert len({*story.results.values()}) == 1, "they were told of two"

    return Scenario(
        "window × window",
        lambda: iter_clear(mine),
        [posting(mine, "first", 1), posting(mine, "second", 2)],
        check,
    )


def over(mine: Users) -> Scenario:
    """The window is over: one opens it anew while another sweeps what is over."""

    def setup() -> Script:
        yield mine.clear()
        yield admit("posts", "k", "old", token(0), window_s=WINDOW_S)
        yield later(WINDOW_S + 1)

    def check(story: Story) -> None:
        assert story.results["new"] == "new"
        later_one: Admitted = story.run(admit("posts", "k", "third", token(3), window_s=WINDOW_S))
        assert later_one.value == "new", "the sweep took a window that was opened anew"

    return Scenario(
        "window × purge",
        setup,
        [posting(mine, "new", 1), doing("purge", purge_windows(limit=10))],
        check,
    )


def test_a_sweep_takes_only_what_is_over(race: Race, mine: Users) -> None:
    race(over(mine))


def test_one_of_a_window_is_new(race: Race, mine: Users) -> None:
    race(two_posts(mine))


def test_without_the_window_both_are(race: Race, mine: Users) -> None:
    guard = "WHERE known.until <= fencerow.now()"
    race.turns_red(
        two_posts(mine),
        Cut("admit", (guard, ""), (guard, "")),
        Cut("read_admitted", None, ("WHERE known.name", "WHERE false AND known.name")),
    )


def test_a_failed_enqueue_frees_the_window(race: Race, mine: Users) -> None:
    race(posts(mine))


def late_withdrawal(mine: Users) -> Scenario:
    """The first one's window is over before its enqueue fails; others come meanwhile."""

    def setup() -> Script:
        yield mine.clear()
        yield admit("posts", "k", "derived", token(1), window_s=WINDOW_S)
        yield later(WINDOW_S + 1)

    def check(story: Story) -> None:
        later_one: Admitted = story.run(admit("posts", "k", "third", token(3), window_s=WINDOW_S))
        assert mine.effects(story) == ["second"]
        assert (later_one.is_new, later_one.value) == (False, "second"), "two are enqueued within one window"

    return Scenario(
        "window × late withdrawal",
        setup,
        [
            doing("first", withdraw_admitted("posts", "k", token(1))),
            posting(mine, "second", 2),
        ],
        check,
    )


def test_a_late_withdrawal_takes_nobody_elses(race: Race, mine: Users) -> None:
    race(late_withdrawal(mine))


def test_without_the_token_it_does(race: Race, mine: Users) -> None:
    cut = Cut("withdraw_admitted", ("AND token = CAST(:token AS uuid)", ""), ("AND token = :token", ""))
    race.turns_red(late_withdrawal(mine), cut)


def in_the_users_transaction(mine: Users) -> Scenario:
    """Admission and enqueue are committed together; the first one is rolled back."""

    def both(name: str, who: int, *, aborts: bool) -> Operation[Any]:
        def steps() -> Steps[Admitted]:
            admitted = yield from admit("posts", "k", name, token(who), window_s=WINDOW_S).steps()
            if admitted.is_new:
                yield from mine.effect(name).steps()
            if aborts:
                raise Abandoned
            return admitted

        return transaction("admit and enqueue", steps)

    def check(story: Story) -> None:
        assert isinstance(story.results["first"], Abandoned)
        assert story.results["second"].is_new
        assert mine.effects(story) == ["second"]

    return Scenario(
        "window in a transaction that aborts × the same",
        lambda: iter_clear(mine),
        [doing("first", both("first", 1, aborts=True)), doing("second", both("second", 2, aborts=False))],
        check,
    )


def test_what_is_rolled_back_was_never_admitted(race: Race, mine: Users) -> None:
    race(in_the_users_transaction(mine))
