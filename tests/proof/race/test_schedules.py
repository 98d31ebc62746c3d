"""Ticks against each other, a pause, a change, a removal, a run by hand and the clock: a fire makes one job."""

from __future__ import annotations

from typing import Any

from fencerow.db.queries import Query
from fencerow.db.run import Operation, Rows, Statement, Steps
from fencerow.schedules import definitions, following, looking, reconciling, running, ticking
from fencerow.schedules.definition import Definition, Overlap, digest_of
from fencerow.schedules.definitions import RowKind, WantedRow, wanted_row
from fencerow.schedules.listing import Listing
from fencerow.schedules.misfire import Misfire
from fencerow_proof.arena.actor import Actor, Script, doing, later
from fencerow_proof.arena.crash import Point, points
from fencerow_proof.arena.race import Scenario, Story, perform
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import acting, cancel, new_job

NAME = "report"
UNLOCKED = Cut("due_schedules", ("FOR UPDATE SKIP LOCKED", ""))
AGAIN = Cut(
    "insert_ticks",
    (
        "ON CONFLICT (name, entity, fire_at) DO NOTHING",
        "ON CONFLICT (name, entity, fire_at) DO UPDATE SET at = excluded.at",
    ),
)
BACK = Cut(
    "advance_schedules",
    ("greatest(fencerow.at(given.next_us), each.next_at)", "fencerow.at(given.next_us)"),
)
UNSEEN = Cut(
    "advance_schedules",
    ("AND each.next_at = fencerow.at(given.seen_us)\n  AND each.version = given.version", ""),
)
UNLOCKED_BY_HAND = Cut("lock_schedules", ("FOR UPDATE", ""))


def wanted(seconds: int, overlap: Overlap = Overlap.ALLOW, misfire: Misfire = Misfire.ONE) -> WantedRow:
    spec = {"interval_s": seconds, "spread": False}
    rules = Definition(spec=spec, work=new_job(""), overlap=overlap, misfire=misfire)
    return wanted_row(NAME, "", RowKind.SINGLE, rules)


def putting(seconds: int, overlap: Overlap = Overlap.ALLOW, misfire: Misfire = Misfire.ONE) -> Operation[Any]:
    return definitions.put_one(wanted(seconds, overlap, misfire), actor="ann")


def due(overlap: Overlap = Overlap.ALLOW, seconds: int = 60) -> Any:
    def setup() -> Script:
        yield putting(seconds, overlap)
        yield from behind_the_fire()

    return setup


def behind_the_fire(seconds: float = 1.0) -> Script:
    """Let the next fire be due, and none after it however long the order takes to play; returns when it was."""
    (row,) = yield looking.read_schedules(name=NAME)
    now_us = yield looking.now_us()
    yield later((row.next_us - now_us) / 1e6 + seconds)
    return row.next_us


def raw(text: str) -> Operation[Rows]:
    def steps() -> Steps[Rows]:
        return (yield Statement("raw", {}, Query("raw", (text,), ())))

    return Operation("raw", steps)


def ticker(name: str) -> Actor:
    return doing(name, ticking.tick())


def made(story: Story) -> list[ticking.Tick]:
    return [each for each in story.run(ticking.read_ticks(NAME, None, 100)) if each.job_id is not None]


def live(story: Story) -> int:
    """The jobs that ticks made and that have not ended; each tick's job is there."""
    states = [each.state for each in made(story)]
    assert None not in states, "a tick without its job"
    return states.count("queued")


def submitted(story: Story) -> int:
    return sum(len(each.jobs) for each in story.results.values() if isinstance(each, ticking.Ticked))


# --- ticks ------------------------------------------------------------------------------------------------


def one_job(story: Story) -> None:
    (tick,) = made(story)
    assert (submitted(story), live(story)) == (1, 1), "a fire made two jobs"
    (row,) = story.run(looking.read_schedules(name=NAME))
    assert row.next_us is not None and row.next_us > tick.fire_us and row.last_job_id == tick.job_id


two_ticks = Scenario("tick × tick", due(), [ticker("one"), ticker("two")], one_job)


@named(63)
def test_a_fire_makes_one_job_however_many_see_it(race: Race) -> None:
    race(two_ticks)


@in_modes("plain", "held")
def test_the_key_of_the_ticks_holds_without_the_lock(race: Race) -> None:
    race.without(two_ticks, UNLOCKED)


@named(63)
@in_modes("plain", "held")
def test_two_jobs_are_made_without_both(race: Race) -> None:
    race.turns_red(two_ticks, UNLOCKED, AGAIN, BACK)


@named(63, 71)
def test_a_clock_that_goes_back_between_two_ticks_fires_nothing_twice(race: Race) -> None:
    back = doing("clock", later(-60), later(60))
    race(
        Scenario(
            "tick × tick × clock back and forward", due(), [ticker("one"), ticker("two"), back], at_most_one
        ),
        share=0.1,
    )


def at_most_one(story: Story) -> None:
    """Who ticks while the clock is back makes nothing; nobody makes it twice."""
    assert submitted(story) == len(made(story)) <= 1
    story.run(ticking.tick())
    assert len(made(story)) == 1


# --- what people and code do meanwhile ----------------------------------------------------------------------


def and_then_counts(name: str, operation: Operation[Any]) -> Actor:
    """What was done, and how many ticks there were once it had returned."""

    def script() -> Script:
        yield operation
        ticks = yield ticking.read_ticks(NAME, None, 100)
        return len(ticks)

    return acting(name, script)


def nothing_after(story: Story) -> None:
    assert story.results["person"] == len(made(story)) == submitted(story), "it fired after that had returned"


def paused(story: Story) -> None:
    nothing_after(story)
    assert story.run(ticking.tick()).jobs == []


pause = Scenario(
    "tick × pause",
    due(),
    [ticker("worker"), and_then_counts("person", definitions.pause(NAME, None, actor="ann", reason=None))],
    paused,
)
removal = Scenario(
    "tick × removal",
    due(),
    [ticker("worker"), and_then_counts("person", definitions.remove(NAME, None))],
    nothing_after,
)


@named(63)
def test_nothing_fires_once_a_pause_has_returned(race: Race) -> None:
    race(pause)


@named(63)
@in_modes("plain", "held")
def test_it_does_when_the_tick_does_not_lock(race: Race) -> None:
    race.turns_red(pause, UNLOCKED)


@named(63)
def test_nothing_fires_once_a_removal_has_returned(race: Race) -> None:
    race(removal)


@named(63)
@in_modes("plain", "held")
def test_a_removed_one_fires_when_the_tick_does_not_lock(race: Race) -> None:
    race.turns_red(removal, UNLOCKED)


def reconciled_away() -> Operation[Any]:
    return reconciling.reconcile([], owner="app", own=["send"], running=[], actor="worker")


def declared() -> Script:
    yield reconciling.reconcile([wanted(60)], owner="app", own=["send"], running=[], actor="worker")
    yield from behind_the_fire()


@named(63)
def test_nothing_fires_once_code_no_longer_declares_it(race: Race) -> None:
    actors = [ticker("worker"), and_then_counts("person", reconciled_away())]
    race(Scenario("tick × reconcile's delete", declared, actors, nothing_after))


def by_the_new_times(story: Story) -> None:
    if not made(story):  # the tick went past a row that was locked; the next one sees it
        story.run(ticking.tick())
    (row,) = story.run(looking.read_schedules(name=NAME))
    assert len(made(story)) == 1
    assert row.next_us is not None
    assert row.next_us - row.changed_at_us <= 120_000_000, "it waits for a time of its old definition"


change = Scenario(
    "tick × change",
    due(seconds=3600),
    [ticker("worker"), doing("person", putting(60))],
    by_the_new_times,
)


@named(63)
def test_a_change_is_not_undone_by_a_tick(race: Race) -> None:
    race(change)


@named(63)
@in_modes("plain", "held")
def test_a_tick_that_neither_locks_nor_looks_undoes_a_change(race: Race) -> None:
    race.turns_red(change, UNLOCKED, UNSEEN)


def one_at_a_time(story: Story) -> None:
    assert live(story) == 1, "two run side by side"


hand = Scenario(
    "tick × run now",
    due(Overlap.SKIP),
    [ticker("worker"), doing("person", running.run_now(NAME, None, actor="ann"))],
    one_at_a_time,
)


@named(63)
def test_a_run_by_hand_and_a_tick_see_each_other(race: Race) -> None:
    race(hand)


@named(63)
@in_modes("plain", "held")
def test_they_do_not_without_the_lock(race: Race) -> None:
    race.turns_red(hand, UNLOCKED, UNLOCKED_BY_HAND)


@named(63)
def test_two_reconciles_at_once_agree(race: Race) -> None:
    both = [
        doing(name, reconciling.reconcile([wanted(60)], owner="app", own=["send"], running=[], actor=name))
        for name in ("one", "two")
    ]

    def agreed(story: Story) -> None:
        (row,) = story.run(looking.read_schedules())
        assert row.version == 1
        assert sum(len(each.made) for each in story.results.values()) == 1

    def nothing() -> Script:
        yield from ()

    race(Scenario("reconcile × reconcile", nothing, both, agreed))


def entity(name: str) -> WantedRow:
    return wanted_row(NAME, name, RowKind.ENTITY, wanted(60).definition)


def listing(*names: str) -> Operation[Any]:
    digest = digest_of(wanted(60).definition.text())
    listed = Listing({each: entity(each) for each in names})
    return following.refresh(NAME, digest, listed, owner="app", actor="worker")


def followed() -> Script:
    head = wanted_row(NAME, "", RowKind.HEAD, wanted(60).definition)
    yield reconciling.reconcile([head], owner="app", own=["send"], running=[], actor="worker")
    yield listing("a", "b", "c")


def a_word_is_kept(story: Story) -> None:
    (paused, _there) = story.results["person"]
    rows = {row.entity: row for row in story.run(looking.read_schedules(name=NAME, entities=True))}
    if paused:
        assert "a" in rows and rows["a"].paused_at_us is not None, "a pause went with its row"
        assert rows["a"].undeclared_at_us is not None, "nobody would ever remove it"


vanishing = Scenario(
    "pause × a list that lacks it",
    followed,
    [
        doing("person", definitions.pause(NAME, "a", actor="ann", reason="by law")),
        doing("worker", listing("b", "c")),
    ],
    a_word_is_kept,
)
WORD = ("AND (each.paused_at IS NULL OR each.paused_with_all)", "")
WORDLESS = Cut("remove_undeclared", WORD, WORD)


@named(63)
def test_a_pause_does_not_go_with_its_entity(race: Race) -> None:
    race(vanishing)


@named(63)
def test_a_pause_goes_without_the_guard(race: Race) -> None:
    race.turns_red(vanishing, WORDLESS)


# --- crashes ----------------------------------------------------------------------------------------------


def test_a_tick_broken_anywhere_happened_or_did_not(race: Race) -> None:
    arena: Any = race._arena
    for point in points(5, alone=False):
        arena.clear()
        perform(arena, due(Overlap.SKIP)())
        arena.break_at(ticking.tick(), point)
        story = Story(arena)
        assert len(made(story)) == live(story) == (point == Point("committed")), point
        arena.run(ticking.tick())
        arena.run(ticking.tick())
        assert len(made(story)) == live(story) == 1, point
        job_id = made(story)[0].job_id
        assert job_id is not None
        arena.run(cancel(job_id))
