"""What was missed, and what a window keeps back: backfills against each other, ticks and purges; a job that was picked
up in a maintenance window against its cancel, its reclaim and other claims."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.schedules import looking, past, ticking
from fencerow.schedules.misfire import Misfire
from fencerow_proof.arena.actor import Actor, Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    SECOND,
    acting,
    cancel,
    claim,
    state,
    sweep,
    with_running,
    with_zombie,
)
from tests.proof.race.test_schedules import (
    AGAIN,
    BACK,
    NAME,
    UNLOCKED,
    UNLOCKED_BY_HAND,
    behind_the_fire,
    due,
    live,
    made,
    putting,
    submitted,
    ticker,
)

MINUTE_US = 60_000_000
PAST = [("", number * MINUTE_US) for number in range(3)]  # of a schedule that fires each minute
WHATEVER_THERE_IS = Cut("make_up_ticks", ("WHERE tick.job_id IS NULL\n", ""), ("WHERE job_id IS NULL\n", ""))
SILENT = Cut(
    "purge_ticks",
    *2 * (("coalesce(each.forgotten_until < old.fire_at, true)", "false"),),
)


def backfilling(name: str, fires: list[past.Fire]) -> Actor:
    return doing(name, past.backfill(NAME, None, fires, actor=name))


# --- backfill × backfill --------------------------------------------------------------------------------------


def each_once(story: Story) -> None:
    stored = sum(len(story.results[name]) for name in ("one", "two"))
    assert stored == len(made(story)) == live(story) == len(PAST), "a fire made two jobs, or none"


two_backfills = Scenario(
    "backfill × backfill", due(), [backfilling("one", PAST), backfilling("two", PAST[::-1])], each_once
)


@named(63)
def test_two_backfills_make_each_fire_once(race: Race) -> None:
    race(two_backfills)


@named(63)
def test_they_make_some_twice_without_the_look_at_the_job(race: Race) -> None:
    race.turns_red(two_backfills, WHATEVER_THERE_IS)


# --- tick × backfill over a range -----------------------------------------------------------------------------


def catching_up() -> Script:
    """Three fires of one row are due, all to be made."""
    yield putting(60, misfire=Misfire.ALL)
    return (yield from behind_the_fire(121))


def over_a_range(first_us: int) -> Script:
    """The one before, which nobody made, and two of those that are due."""
    fires = [("", first_us + number * MINUTE_US) for number in (-1, 0, 1)]
    return (yield past.backfill(NAME, None, fires, actor="person"))


def four_in_all(story: Story) -> None:
    stored = submitted(story) + len(story.results["person"])
    story.run(ticking.tick())  # the tick may have gone past the row while it was locked
    assert len(made(story)) == live(story) == 4, "a fire made two jobs, or none"
    assert stored in (3, 4)


range_of_fires = Scenario(
    "tick × backfill over a range",
    catching_up,
    [ticker("worker"), Actor("person", over_a_range)],
    four_in_all,
)


@named(63)
def test_a_tick_and_a_backfill_make_each_fire_once(race: Race) -> None:
    race(range_of_fires)


@named(63)
def test_they_make_some_twice_without_the_keys_of_the_ticks(race: Race) -> None:
    race.turns_red(range_of_fires, WHATEVER_THERE_IS)


@in_modes("plain", "held")
@named(63)
def test_a_tick_makes_what_a_backfill_made_without_lock_and_key(race: Race) -> None:
    race.turns_red(range_of_fires, UNLOCKED, UNLOCKED_BY_HAND, AGAIN, BACK)


# --- purge × backfill -----------------------------------------------------------------------------------------


def fired_long_ago() -> Script:
    yield putting(60)
    first_us = yield from behind_the_fire()
    ticked = yield ticking.tick()
    yield cancel(ticked.jobs[0].id)  # a tick whose job lives is not purged
    yield later(3600)
    yield ticking.tick()
    return first_us


def that_one_again(first_us: int) -> Script:
    return (yield past.backfill(NAME, None, [("", first_us)], actor="person"))


def not_again(story: Story) -> None:
    assert story.results["person"] == [], "a fire whose tick was purged made a second job"


forgetting = Scenario(
    "purge of ticks × backfill",
    fired_long_ago,
    [doing("keeper", ticking.purge_ticks(age_s=60.0, limit=10)), Actor("person", that_one_again)],
    not_again,
)


@named(63)
def test_a_fire_whose_tick_is_purged_meanwhile_is_not_made_again(race: Race) -> None:
    race(forgetting)


@named(63)
def test_it_is_when_ticks_go_that_no_row_tells_of(race: Race) -> None:
    race.turns_red(
        forgetting,
        SILENT,
        Cut(
            "note_forgotten",
            ("SET forgotten_until = last.fire_at", "SET trouble = NULL"),
            ("SET forgotten_until = past.fire_at", "SET trouble = NULL"),
        ),
    )


# --- a maintenance window at pick-up --------------------------------------------------------------------------

WINDOW_S = 3600.0


def lost() -> Script:
    """A worker has picked the job up in a window, and is late: another will call it dead."""
    yield from with_running()()
    yield later(31)
    yield store.renew(holder=SECOND)


def held_back() -> Script:
    release = store.Requeue(id=JOB, attempt=1, kind="released", delay_s=WINDOW_S, failures=0, snoozes=0)
    return [each.id for each in (yield store.requeue([release], holder=FIRST))]


def taken_back_and_claimed() -> Script:
    yield from sweep()
    return (yield from claimed())


def claimed() -> Script:
    """What was taken back from a dead worker is a suspect."""
    suspects = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    return [(each.attempt, each.failures, each.snoozes) for each in [*suspects, *(yield claim(SECOND))]]


def one_holder(story: Story) -> None:
    """Who takes the job back, cancels it or holds it until the window ends, is one; the others are told."""
    held, taken = story.results["worker"], story.results["other"]
    assert not (held and taken), "a job that waits for the end of a window was claimed in it"
    assert all((failures, snoozes) == (0, 0) for _, failures, snoozes in taken)
    (job,) = story.run(store.read([JOB])).values()
    if job.state.value == "queued" and held:
        assert (job.failures, job.snoozes, job.crashes) == (0, 0, 0)
        assert job.run_at_us > story.run(looking.now_us()), "it is due in the window"
    assert state(story) == ("running" if taken and not job.is_final else job.state.value)


window = Scenario(
    "hold until a window's end × cancel × reclaim × claim",
    lost,
    [
        acting("worker", held_back),
        doing("person", cancel()),
        acting("other", taken_back_and_claimed),
    ],
    one_holder,
)


taken_back = Scenario(
    "late hold until a window's end × second claim",
    with_zombie,
    [acting("worker", held_back), acting("other", claimed)],
    one_holder,
)


@named(63)
def test_a_job_in_a_window_has_one_next_state(race: Race) -> None:
    race(window, share=0.2)
    race(taken_back)


@named(63)
def test_without_the_fence_it_is_taken_out_of_the_next_ones_hands(race: Race) -> None:
    race.turns_red(
        taken_back,
        Cut(
            "requeue",
            ("      AND job.holder = CAST(:holder AS uuid)\n", ""),
            ("\n  AND +fencerow.jobs.holder = :holder", ""),
        ),
        Cut(
            "requeue",
            ("      AND job.attempt = outcome.attempt\n", ""),
            ("\n  AND fencerow.jobs.attempt = json_extract(o.value, '$.attempt')", ""),
        ),
    )
