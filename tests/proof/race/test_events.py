"""Races of the event bus: publishers who abort, sequencers, readers who were replaced, replays, redrives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from fencerow.db.locks import lock_number, take_lock
from fencerow.db.run import Operation, Steps
from fencerow.errors import PartitionLost
from fencerow.events import asides, consumers
from fencerow.events.consumers import Aside, EventPage, PartitionLease, Stored
from fencerow.events.groups import GroupStart, make_group, replay
from fencerow.events.outbox import NewEvent, append
from fencerow.events.sequencer import Memory, sequence
from fencerow_proof.arena.actor import Abandoned, Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, LEASE_S, SECOND, THIRD, uid

GROUP = "g"
ROW = lock_number("tests", "a row of the user's")
READER = PartitionLease(GROUP, 0, FIRST, 1, 0)
FAR_S = 1000.0

# --- people --------------------------------------------------------------------------------------


def published(*data: Any, key: str | None = None, topic: str = "t") -> Operation[list[int]]:
    return append([NewEvent(topic, each, key) for each in data])


def publishing(name: str, *data: Any, key: str | None = None) -> Actor:
    """One transaction for each."""

    def script(_: Any) -> Script:
        for each in data:
            yield transaction("publish", published(each, key=key).steps)

    return Actor(name, script)


def aborting(name: str, data: Any) -> Actor:
    """A user who publishes and rolls back."""

    def steps() -> Steps[Any]:
        yield from published(data).steps()
        raise Abandoned

    def script(_: Any) -> Script:
        try:
            yield transaction("publish and abort", steps)
        except Abandoned:
            pass

    return Actor(name, script)


def sequencing(name: str, looks: int = 1, *, forgets_gaps: bool = False) -> Actor:
    """A sequencer with a memory."""

    def script(_: Any) -> Script:
        memory: Memory | None = Memory(0)
        for _look in range(looks):
            one = yield sequence(memory, limit=10)
            memory = one.memory
            if forgets_gaps and memory is not None:
                memory = Memory(memory.mark)

    return Actor(name, script)


def reading(name: str, looks: int = 2) -> Actor:
    """A reader who goes by the places, from where he was; returns the data that he saw, and how far he came."""

    def script(_: Any) -> Script:
        seen, after = [], 0
        for _look in range(looks):
            page = yield read(after)
            seen += [data_of(each) for each in page.events]
            after = max([after, *(each.seq for each in page.events)])
        return seen, after

    return Actor(name, script)


def read(after: int, lease: PartitionLease = READER) -> Operation[EventPage]:
    return consumers.read_events(lease, ["t"], after=after, partitions=1)


def data_of(event: Stored) -> Any:
    return msgspec.json.decode(event.data)


def everything(story: Story, after: int = 0, topic: str = "t") -> list[Stored]:
    """What a reader sees who comes after all."""
    for _ in range(2):
        story.run(sequence(None))
    page = story.run(consumers.read_events(READER, [topic], after=after, partitions=1))
    return list(page.events)


def empty() -> Script:
    yield later(0)


# --- the sequencer -------------------------------------------------------------------------------


def nothing_is_missed(story: Story) -> None:
    failed = {name: result for name, result in story.results.items() if isinstance(result, Exception)}
    assert not failed, failed
    seen, after = story.results["reader"]
    whole = [data_of(each) for each in everything(story)]
    rest = [data_of(each) for each in everything(story, after)]

    assert Counter(seen + rest) == Counter(whole), "each is seen once, by whoever goes on from where he was"
    assert seen + rest == whole, "in one order for all"
    assert sorted(whole) == ["a1", "a2", "b1"], "all that was committed, and nothing else"
    assert [each for each in whole if each in ("a1", "a2")] == ["a1", "a2"], (
        "a key's in the order of its commits"
    )


bus = Scenario(
    "sequencer × sequencer × writers × aborting writer × reader",
    empty,
    [
        publishing("a", "a1", "a2", key="a"),
        publishing("b", "b1", key="b"),
        aborting("c", "c1"),
        sequencing("first", 2),
        sequencing("second"),
        reading("reader"),
    ],
    nothing_is_missed,
)
sequencers = Scenario(
    "sequencer × sequencer × late writer × reader",
    empty,
    [
        publishing("a", "a1", "a2", key="a"),
        publishing("b", "b1", key="b"),
        sequencing("first", 3),
        reading("reader"),
    ],
    nothing_is_missed,
)
forgetful = Scenario(
    "a sequencer that forgets its gaps",
    empty,
    [
        publishing("a", "a1", "a2", key="a"),
        publishing("b", "b1", key="b"),
        sequencing("first", 3, forgets_gaps=True),
        reading("reader"),
    ],
    nothing_is_missed,
)


def none_fails(story: Story) -> None:
    assert not [each for each in story.results.values() if isinstance(each, Exception)], story.results
    assert sorted(data_of(each) for each in everything(story)) == ["a1", "b1"]


two = Scenario(
    "sequencer × sequencer × late writer",
    empty,
    [publishing("a", "a1"), publishing("b", "b1"), sequencing("first"), sequencing("second")],
    none_fails,
)

BY_ID = (
    Cut("read_events", ("event.id, event.seq,", "event.id, event.id AS seq,")),
    Cut("read_events", ("max(event.seq)", "max(event.id)")),
    Cut("read_events", ("each.seq", "each.id")),
    Cut("read_events", ("ORDER BY event.seq)", "ORDER BY event.id)")),
)


@named(32)
def test_nothing_is_missed_and_nothing_aborted_is_seen(race: Race) -> None:
    race(bus, share=0.25)


@named(32)
def test_events_of_a_key_keep_their_order_when_one_commits_late(race: Race) -> None:
    race(sequencers, share=0.25)


@in_modes("plain")
def test_a_reader_who_goes_by_ids_loses_events(race: Race) -> None:
    race.turns_red(sequencers, *BY_ID)


@in_modes("plain")
def test_without_its_gaps_a_sequencer_leaves_late_events_behind(race: Race) -> None:
    """What would be left to a sweep comes in the wrong order, or not at all."""
    race.turns_red(forgetful, Cut("read_settled", ("COALESCE(", "COALESCE(NULL, ")))


@in_modes("plain", "held")
@named(32)
def test_two_sequencers_take_turns(race: Race) -> None:
    race(two, share=0.4)


@in_modes("plain", "held")
@named(32)
def test_two_sequencers_without_their_lock_meet_in_the_index(race: Race) -> None:
    race.turns_red(
        two, Cut("take_lock", ("pg_advisory_xact_lock(CAST(:lock AS bigint))", "CAST(:lock AS bigint)"))
    )


# --- the order of a key --------------------------------------------------------------------------


def ordering(name: str, *, lock_first: bool) -> Actor:
    """A user who locks what the key stands for, before or after publishing; "t" tells the places, "u" the commits."""

    def steps() -> Steps[None]:
        if lock_first:
            yield from take_lock(ROW)
        yield from published(name, key="k").steps()
        if not lock_first:
            yield from take_lock(ROW)
        yield from published(name, topic="u").steps()

    def script(_: Any) -> Script:
        yield transaction("lock and publish", steps)

    return Actor(name, script)


def in_order_of_commits(story: Story) -> None:
    assert not [each for each in story.results.values() if isinstance(each, Exception)], story.results
    places = [data_of(each) for each in everything(story)]
    commits = [data_of(each) for each in everything(story, topic="u")]
    assert places == commits, "who got the lock second has committed second"


def writers(name: str, *, lock_first: bool) -> Scenario:
    actors = [ordering(each, lock_first=lock_first) for each in ("a", "b")]
    return Scenario(name, empty, [*actors, sequencing("sequencer", 2)], in_order_of_commits)


locked_first = writers("two who lock what the key stands for, then publish × sequencer", lock_first=True)
locked_late = writers("two who publish, then lock what the key stands for × sequencer", lock_first=False)


def test_events_of_a_key_follow_the_commits_of_those_who_lock_first(race: Race) -> None:
    race(locked_first, share=0.25)


@in_modes("plain", "held")
def test_who_locks_after_publishing_may_be_overtaken(race: Race) -> None:
    race.breaks(locked_late, "the lock is taken after the event's number")


# --- readers who were replaced -------------------------------------------------------------------


def effect(stored: Stored, lease: PartitionLease, acknowledge: Operation[None]) -> Operation[None]:
    """A handler's effect, which is an event here, and the acknowledgement in one transaction."""

    def steps() -> Steps[None]:
        yield from append([NewEvent("effect", [data_of(stored), lease.fence])]).steps()
        yield from acknowledge.steps()

    return transaction("effect", steps)


def drained(lease: PartitionLease, page: EventPage) -> Script:
    """Deliver what was read, one after the other; returns what was done."""
    done: list[Any] = []
    cursor = lease.cursor
    for stored in page.events:
        try:
            yield effect(stored, lease, consumers.advance(lease, old=cursor, cursor=stored.seq))
        except PartitionLost:
            return done, "lost"
        done.append(data_of(stored))
        cursor = stored.seq
    return done, "ok"


def hold(holder: str) -> Operation[consumers.HeldPartitions]:
    return consumers.hold_partitions(GROUP, holder=holder, name="w", lease_s=LEASE_S)


def group_with(*data: Any, holder: str = FIRST) -> Any:
    """A setup: a group of one partition that reads from the beginning, events in it, and a first reader."""

    def setup() -> Script:
        yield published(*data, key="k")
        yield sequence(None)
        yield make_group(GROUP, ["t"], partitions=1, start=GroupStart("beginning"))
        held = yield hold(holder)
        (lease,) = held.leases
        return lease

    return setup


def zombie(lease: PartitionLease) -> Script:
    """It read, was silent for a lease, and goes on."""
    page = yield read(lease.cursor, lease)
    return (yield from drained(lease, page))


def successor(_: PartitionLease) -> Script:
    """It takes over what a dead reader left."""
    yield later(LEASE_S + 1)
    held = yield hold(SECOND)
    if not held.leases:
        return [], "none"
    lease = held.leases[0]
    page = yield read(lease.cursor, lease)
    return (yield from drained(lease, page))


def effects(story: Story) -> list[list[Any]]:
    return [data_of(each) for each in everything(story, topic="effect")]


def once_each(story: Story) -> None:
    done = effects(story)

    told = story.results["successor"][1]
    (part,) = story.run(consumers.partitions(GROUP))
    left = [data_of(each) for each in story.run(read(part.cursor)).events]
    # A reader that is just committing keeps its row; who finds it locked comes again.
    assert told == "ok" or (told == "none" and part.fence == 1), f"the reader of now was told: {told}"
    assert [data for data, _ in done] + left == ["e1", "e2"], (
        f"each effect once, in order: {done}, left: {left}"
    )


drain_drain = Scenario(
    "drain × drain with a lost lock",
    group_with("e1", "e2"),
    [Actor("zombie", zombie), Actor("successor", successor)],
    once_each,
)
FENCE = (
    ("\n  AND held.holder = CAST(:holder AS uuid)\n  AND held.fence = CAST(:fence AS bigint)", ""),
    ("\n  AND holder = :holder\n  AND fence = :fence", ""),
)


def test_a_replaced_reader_commits_nothing(race: Race) -> None:
    race(drain_drain, share=0.4)


def test_without_the_fence_a_replaced_reader_commits(race: Race) -> None:
    race.turns_red(drain_drain, Cut("advance_cursor", *FENCE))


def left_behind(lease: PartitionLease) -> Script:
    """The thread of a handler that was given up for its time: it still commits, under the same fence."""
    page = yield read(0, lease)
    stored = page.events[0]
    try:
        yield effect(stored, lease, consumers.advance(lease, old=0, cursor=stored.seq))
    except PartitionLost:
        return "refused"
    return "ok"


def gone_on(lease: PartitionLease) -> Script:
    """Its reader: it put the event aside, and delivers it again."""
    page = yield read(0, lease)
    stored = page.events[0]
    aside = Aside(stored.seq, stored.id, stored.key, 1)
    try:
        yield consumers.advance(lease, old=0, cursor=stored.seq, asides=[aside])
    except PartitionLost:
        return "it was quick enough"
    yield later(1)
    (again,) = yield asides.due_asides(lease)
    yield asides.try_aside(lease, again.seq)
    yield effect(again, lease, asides.end_aside(lease, again.seq))
    return "again"


def one_effect(story: Story) -> None:
    assert [data for data, _ in effects(story)] == ["e1"], effects(story)


late_thread = Scenario(
    "a handler left behind × its reader",
    group_with("e1"),
    [Actor("handler", left_behind), Actor("reader", gone_on)],
    one_effect,
)


def test_a_handler_that_was_given_up_commits_nothing(race: Race) -> None:
    race(late_thread, share=0.25)


def test_without_the_cursor_in_the_guard_it_would(race: Race) -> None:
    race.turns_red(
        late_thread,
        Cut(
            "advance_cursor",
            ("\n  AND held.cursor = CAST(:old AS bigint)", ""),
            ("\n  AND cursor = :old", ""),
        ),
    )


# --- replay --------------------------------------------------------------------------------------


def replaying(_: PartitionLease) -> Script:
    return (yield replay(GROUP, GroupStart("beginning")))


def third(_: PartitionLease) -> Script:
    """Whoever is next, once there is something to take."""
    held = yield hold(THIRD)
    if not held.leases:
        return "none"
    lease = held.leases[0]
    page = yield read(lease.cursor, lease)
    yield from drained(lease, page)
    return lease.fence


def all_again(story: Story) -> None:
    """Whatever the order: what was not delivered under a fence after the replay is still to be delivered."""
    done = effects(story)
    (part,) = story.run(consumers.partitions(GROUP))
    left = [data_of(each) for each in story.run(read(part.cursor)).events]
    after = {data for data, fence in done if fence > 2}

    assert after | {*left} >= {"e1", "e2"}, f"replayed: {done}, left: {left}"


replay_drain = Scenario(
    "replay × drain",
    group_with("e1", "e2"),
    [Actor("reader", zombie), Actor("operator", replaying), Actor("third", third)],
    all_again,
)


def test_a_replay_leaves_nothing_out(race: Race) -> None:
    race(replay_drain, share=0.25)


def test_without_the_fence_a_replay_is_passed_over(race: Race) -> None:
    race.turns_red(replay_drain, Cut("advance_cursor", *FENCE))


# --- park and redrive ----------------------------------------------------------------------------


def with_aside(parked: bool) -> Any:
    def setup() -> Script:
        lease = yield from group_with("e1")()
        page = yield read(0, lease)
        (stored,) = page.events
        aside = Aside(stored.seq, stored.id, stored.key, 3, 0.0, parked, "{}")
        yield consumers.advance(lease, old=0, cursor=stored.seq, asides=[aside])
        yield later(1)
        return lease

    return setup


def trying(lease: PartitionLease) -> Script:
    """A reader that tries what is due, once."""
    done = 0
    for stored in (yield asides.due_asides(lease)):
        if (yield asides.try_aside(lease, stored.seq)) is None:
            continue
        try:
            yield effect(stored, lease, asides.end_aside(lease, stored.seq))
        except PartitionLost:
            return "lost"
        done += 1
    return done


def parking(lease: PartitionLease) -> Script:
    """The same, and it fails for the last time."""
    for stored in (yield asides.due_asides(lease)):
        yield asides.try_aside(lease, stored.seq)
        yield asides.postpone_aside(lease, stored.seq, delay_s=0.0, parked=True, error='{"message":"no"}')


def redriving(name: str) -> Actor:
    return doing(name, asides.redrive(GROUP))


def done_or_kept(story: Story) -> None:
    done, kept = effects(story), aside_count(story)

    assert len(done) + kept == 1, f"done {len(done)} times and kept {kept} times"
    redriven = [*story.results["first"], *story.results["second"]]
    assert len(redriven) == 1, "a parked event is redriven once"


def aside_count(story: Story) -> int:
    return story.run(asides.waiting(READER)).count + len(story.run(asides.parked(GROUP)))


redrive_redrive = Scenario(
    "redrive × redrive × drain",
    with_aside(parked=True),
    [redriving("first"), redriving("second"), Actor("reader", trying)],
    done_or_kept,
)


def kept_or_waiting(story: Story) -> None:
    waiting = story.run(asides.waiting(READER)).count
    parked = story.run(asides.parked(GROUP))

    assert waiting + len(parked) == 1
    assert (waiting == 1) == (len(story.results["operator"]) == 1), (
        "redriven if it was parked, else left alone"
    )


park_redrive = Scenario(
    "park × redrive",
    with_aside(parked=False),
    [Actor("reader", parking), redriving("operator")],
    kept_or_waiting,
)
PARKED_GUARD = (
    ("  AND aside.parked_at IS NOT NULL\n  AND (CAST(:places", "  AND (CAST(:places"),
    ("  AND parked_at IS NOT NULL\n  AND (:places", "  AND (:places"),
)


def test_a_redriven_event_is_done_once_or_kept(race: Race) -> None:
    race(redrive_redrive, share=0.25)


def test_a_redrive_moves_only_what_is_parked(race: Race) -> None:
    race(park_redrive, share=0.25)


def test_without_its_guard_a_redrive_gives_budgets_away(race: Race) -> None:
    race.turns_red(park_redrive, Cut("redrive_events", *PARKED_GUARD))


def aside_successor(_: PartitionLease) -> Script:
    yield later(LEASE_S + 1)
    held = yield hold(SECOND)
    return (yield from trying(held.leases[0]))


def newest_wins(story: Story) -> None:
    assert len(effects(story)) == 1
    assert story.results["successor"] != "lost", (
        "whoever holds the partition now is never told that it does not"
    )


aside_zombie = Scenario(
    "drain × drain over what was put aside",
    with_aside(parked=False),
    [Actor("zombie", trying), Actor("successor", aside_successor)],
    newest_wins,
)


def test_what_was_put_aside_is_fenced_too(race: Race) -> None:
    race(aside_zombie, share=0.25)


# --- taking partitions ---------------------------------------------------------------------------


def taking(name: str, holder: str) -> Actor:
    def script(_: Any) -> Script:
        held = yield hold(holder)
        return [(lease.part, lease.fence) for lease in held.leases]

    return Actor(name, script)


def with_dead_reader() -> Script:
    yield make_group(GROUP, ["t"], partitions=3, start=GroupStart("beginning"))
    yield hold(FIRST)
    yield later(LEASE_S + 1)


def each_has_one_reader(story: Story) -> None:
    taken = [pair for result in story.results.values() for pair in result]
    rows = story.run(consumers.partitions(GROUP))

    assert all(row.holder in (SECOND, THIRD, uid(104)) for row in rows if (row.part, row.fence) in taken)
    assert len(taken) == len({*taken}), "no fence has two readers"
    assert {(row.part, row.fence) for row in rows if row.fence > 1} <= {*taken}


take_take = Scenario(
    "take × take of a dead reader's partitions",
    with_dead_reader,
    [taking("second", SECOND), taking("third", THIRD)],
    each_has_one_reader,
)


def test_a_partition_has_one_reader(race: Race) -> None:
    race(take_take)
