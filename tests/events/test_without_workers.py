"""Events without a worker: what may be published, groups, places, lag, retention, readers that died."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.db.run import Operation
from fencerow.errors import (
    EventNotFound,
    GroupMismatch,
    InvalidInput,
    InvalidPayload,
    InvalidTopic,
    PartitionLost,
    PayloadTooLarge,
    UnknownGroup,
)
from fencerow.events import EventBus, NewEvent, apublish, asides, consumers, lag, publish, publish_many
from fencerow.events.consumers import Aside, PartitionLease
from fencerow.events.groups import END, GroupStart, make_group
from fencerow.events.sequencer import GAPS_MAX, Gap, Memory, remembered, sequence
from fencerow.events.topics import bucket_of, check_patterns, matches, wants_outcomes
from fencerow.testing.clock import DatabaseClock
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine

BEGINNING = GroupStart("beginning")
DAY_S = 86_400.0


@pytest.fixture
def app(engine: AnyEngine) -> App:
    return app_on(engine)


def group_of(
    engine: AnyEngine, name: str = "g", *, partitions: int = 1, start: GroupStart = BEGINNING
) -> PartitionLease:
    """A group of one reader; its first partition."""
    engine.run(sequence())
    engine.run(make_group(name, ["t.*", "t"], partitions=partitions, start=start))
    return hold(engine, name)


def hold(engine: AnyEngine, name: str = "g", *, lease_s: float = 30.0) -> PartitionLease:
    held = engine.run(consumers.hold_partitions(name, holder=new_id(), name="w", lease_s=lease_s))
    return held.leases[0]


def read(engine: AnyEngine, lease: PartitionLease, after: int = 0, **how: Any) -> consumers.EventPage:
    engine.run(sequence())
    return engine.run(consumers.read_events(lease, ["t.*", "t"], after=after, partitions=1, **how))


# --- what may be published -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "topic", ["", "a b", "a..b", ".a", "a.*", "ü", "a\x00b", "x" * 201, 7, "job.succeeded"]
)
def test_a_topic_that_cannot_be_used_is_refused(app: App, topic: Any) -> None:
    with pytest.raises(InvalidTopic):
        publish(app, topic, 1)


@pytest.mark.parametrize("key", ["", "a\x00", "x" * 513, 7])
def test_a_key_that_cannot_be_used_is_refused(app: App, key: Any) -> None:
    with pytest.raises(InvalidInput):
        publish(app, "t", 1, key=key)


@pytest.mark.parametrize("data", [math.nan, {"a": math.inf}, "\ud800", "a\x00", object()])
def test_data_that_cannot_be_kept_is_refused(app: App, data: Any) -> None:
    with pytest.raises(InvalidPayload):
        publish(app, "t", data)


def test_data_that_is_too_large_is_refused(app: App) -> None:
    with pytest.raises(PayloadTooLarge):
        publish(app, "t", "x" * 1_100_000)


async def test_a_refused_publish_leaves_the_transaction_as_it_was(app: App, engine: AnyEngine) -> None:
    app.check_or_create()
    with engine.session() as session:
        publish(app, "t", 1, connection=session.connection)
        with pytest.raises(InvalidTopic):
            publish(app, "no topic", 2, connection=session.connection)
        publish(app, "t", 3, connection=session.connection)
    await apublish(app, "t", 4)
    page = read(engine, group_of(engine))
    assert [each.data for each in page.events] == ["1", "3", "4"]
    await app.aclose()


def test_patterns() -> None:
    assert check_patterns(["b", "a.*", "b"]) == ["a.*", "b"]
    assert matches("order.*", "order.item.added") and not matches("order.*", "orders.paid")
    assert matches("*", "a.b") and matches("a.*.c", "a.b.c") and not matches("a_b", "axb")
    for wrong in ([], "order.*", ["a.**"], ["a b"], [1]):
        with pytest.raises(InvalidTopic):
            check_patterns(wrong)
    assert wants_outcomes(["job.*"]) and wants_outcomes(["job.failed"]) and not wants_outcomes(["*", "jobs"])


def test_both_databases_choose_as_python_does(app: App, engine: AnyEngine) -> None:
    topics = ["t", "t.a", "t.a.b", "ta", "t_x", "u.t"]
    publish_many(app, [NewEvent(topic, topic) for topic in topics])
    lease = group_of(engine)
    for pattern in ("t", "t.*", "*", "*.t", "t_*", "t.*.b"):
        page = engine.run(consumers.read_events(lease, [pattern], after=0, partitions=1))
        assert [each.topic for each in page.events] == [each for each in topics if matches(pattern, each)], (
            pattern
        )
    app.close()


def test_a_key_is_always_in_one_bucket() -> None:
    assert bucket_of("customer-4") == bucket_of("customer-4") < 4096
    assert bucket_of("01a1ff48-197b-76a9-b09e-11ef3b2a6fff") == 0xFFF


# --- the sequencer's memory ----------------------------------------------------------------------


def looked(memory: Memory, **seen: Any) -> Memory:
    facts: dict[str, Any] = {"last": None, "late": [], "fresh": [], "number": 0, "oldest": 0, **seen}
    return remembered(memory, **facts)


def test_a_gap_is_kept_until_nobody_can_fill_it() -> None:
    memory = looked(Memory(10), last=15, fresh=[[12, 13]], number=100, oldest=90)
    assert memory == Memory(15, (Gap(12, 13, 100),)) and memory.settled == 11
    assert looked(memory, oldest=99).gaps == (Gap(12, 13, 100),)
    closed = looked(memory, oldest=100)
    assert closed.gaps == () and closed.settled == 15


def test_what_has_come_late_leaves_the_rest_of_its_gap() -> None:
    memory = Memory(20, (Gap(5, 9, 100),))
    assert looked(memory, late=[7]).gaps == (Gap(5, 6, 100), Gap(8, 9, 100))
    assert looked(memory, late=[5, 6, 7, 8, 9]).gaps == ()


def test_many_gaps_become_one_that_holds_them() -> None:
    memory = Memory(10**6, tuple(Gap(10 * n, 10 * n, n + 1) for n in range(GAPS_MAX)))
    joined = looked(memory, last=10**6 + 2, fresh=[[10**6 + 1, 10**6 + 1]], number=9 * 10**6)
    assert len(joined.gaps) < GAPS_MAX and joined.gaps[0].low == 0
    covered = [any(gap.low <= 10 * n <= gap.high for gap in joined.gaps) for n in range(1, GAPS_MAX)]
    assert all(covered)


async def test_an_event_that_commits_late_is_read_by_who_went_on(app: App, pg: Any) -> None:
    app = app_on(pg)
    app.check_or_create()
    lease = group_of(pg)
    with pg.session() as late:
        publish(app, "t", "late", connection=late.connection)
        await apublish(app, "t", "early")
        one = pg.run(sequence())
        assert one.count == 1 and len(one.memory.gaps) == 1
        page = pg.run(consumers.read_events(lease, ["t"], after=0, partitions=1))
        assert [each.data for each in page.events] == ['"early"']
    two = pg.run(sequence(one.memory))
    assert two.count == 1
    later = pg.run(consumers.read_events(lease, ["t"], after=page.seen, partitions=1))
    assert [each.data for each in later.events] == ['"late"']
    await app.aclose()


def test_a_rolled_back_publish_leaves_a_gap_that_closes(pg: Any) -> None:
    app = app_on(pg)
    with pytest.raises(RuntimeError), pg.session() as session:
        publish(app, "t", 1, connection=session.connection)
        raise RuntimeError
    publish(app, "t", 2)
    one = pg.run(sequence())
    assert one.count == 1 and len(one.memory.gaps) == 1
    assert pg.run(sequence(one.memory)).memory.gaps == ()
    app.close()


def test_many_events_of_one_late_transaction_are_all_placed(pg: Any) -> None:
    app = app_on(pg)
    app.check_or_create()
    with pg.session() as late:
        publish_many(app, [NewEvent("t", number) for number in range(50)], connection=late.connection)
        publish(app, "t", "early")
        memory = pg.run(sequence()).memory
    placed = 0
    for _ in range(20):
        one = pg.run(sequence(memory, limit=7))
        memory, placed = one.memory, placed + one.count
    assert placed == 50 and memory.gaps == ()
    page = pg.run(consumers.read_events(group_of(pg), ["t"], after=0, partitions=1))
    assert [each.data for each in page.events] == ['"early"', *map(str, range(50))]
    app.close()


# --- groups --------------------------------------------------------------------------------------


def test_where_a_group_begins(app: App, engine: AnyEngine, clock: DatabaseClock) -> None:
    publish(app, "t", "old")
    clock.advance(3600)
    publish(app, "t", "young")
    engine.run(sequence())
    second = read(engine, group_of(engine, "beginning")).events[1]
    when = datetime.fromtimestamp(second.published_at_us / 1e6, UTC)
    for name, start, wanted in (
        ("end", END, []),
        ("place", GroupStart.of(second.seq), ['"young"']),
        ("time", GroupStart.of(when), ['"young"']),
        ("never", GroupStart.of(datetime(2100, 1, 1, tzinfo=UTC)), []),
    ):
        lease = group_of(engine, name, start=start)
        assert [each.data for each in read(engine, lease, lease.cursor).events] == wanted, name
    for wrong in ("middle", -1, True, datetime(2026, 1, 1)):
        with pytest.raises(InvalidInput):
            GroupStart.of(wrong)
    app.close()


def test_a_group_that_is_not_there_is_named_with_the_closest(app: App, engine: AnyEngine) -> None:
    group_of(engine, "billing")
    bus = EventBus(app)
    for verb in (
        lambda: bus.redrive("biling"),
        lambda: bus.replay("biling", 0),
        lambda: bus.remove("biling"),
    ):
        with pytest.raises(UnknownGroup, match="did you mean billing"):
            verb()
    bus.remove("billing")
    assert bus.groups() == [] and bus.partitions("billing") == []
    app.close()


def test_a_group_keeps_its_partitions_and_takes_new_topics(engine: AnyEngine) -> None:
    assert engine.run(make_group("g", ["a"], partitions=3)) is True
    assert engine.run(make_group("g", ["b", "job.failed"], partitions=3)) is False
    with pytest.raises(GroupMismatch, match="has 3 partitions"):
        engine.run(make_group("g", ["a"], partitions=4))
    (lags,) = engine.run(lag.lags("g"))
    assert lags.events == 0 and lags.readers == 0


# --- readers -------------------------------------------------------------------------------------


def test_readers_share_and_take_over(engine: AnyEngine, clock: DatabaseClock) -> None:
    engine.run(make_group("g", ["t"], partitions=5, start=BEGINNING))
    one, two = new_id(), new_id()

    def look(holder: str) -> consumers.HeldPartitions:
        return engine.run(consumers.hold_partitions("g", holder=holder, name="w", lease_s=10.0))

    assert len(look(one).leases) == 5
    assert len(look(two).leases) == 0 and look(one).surplus == 2
    engine.run(consumers.give_partitions("g", [0, 1], holder=one))
    assert [each.part for each in look(two).leases] == [0, 1] and look(one).surplus == 0
    clock.advance(11)
    taken = look(two).leases
    assert len(taken) == 5 and [each.careful for each in taken] == [False, False, True, True, True]
    with pytest.raises(UnknownGroup):
        engine.run(consumers.hold_partitions("h", holder=one, name="w", lease_s=10.0))


def test_who_was_replaced_acknowledges_nothing(app: App, engine: AnyEngine, clock: DatabaseClock) -> None:
    publish_many(app, [NewEvent("t", 1), NewEvent("t", 2)])
    old = group_of(engine)
    first = read(engine, old).events[0]
    clock.advance(31)
    new = hold(engine)
    assert new.fence > old.fence
    refusals: list[Operation[Any]] = [
        consumers.advance(old, old=0, cursor=first.seq),
        consumers.try_event(old, first.seq),
        asides.try_aside(old, first.seq),
        asides.end_aside(old, first.seq),
        asides.postpone_aside(old, first.seq, delay_s=1, parked=False, error="{}"),
    ]
    for refused in refusals:
        with pytest.raises(PartitionLost):
            engine.run(refused)
    engine.run(consumers.advance(new, old=0, cursor=first.seq))
    app.close()


def test_an_event_of_which_readers_die_is_counted(app: App, engine: AnyEngine, clock: DatabaseClock) -> None:
    publish(app, "t", "deadly")
    lease = group_of(engine)
    place = read(engine, lease).events[0].seq
    for number in range(1, 4):
        assert engine.run(consumers.try_event(lease, place)) == number
        clock.advance(31)
        lease = hold(engine)
        assert lease.careful
    engine.run(consumers.advance(lease, old=0, cursor=place))
    assert engine.run(consumers.try_event(lease, place + 1)) == 1
    app.close()


def test_events_of_a_key_wait_for_the_one_that_failed(
    app: App, engine: AnyEngine, clock: DatabaseClock
) -> None:
    publish_many(app, [NewEvent("t", 1, "a"), NewEvent("t", 2, "a"), NewEvent("t", 3, "b"), NewEvent("t", 4)])
    lease = group_of(engine)
    page = read(engine, lease)
    failed = [
        Aside(each.seq, each.id, each.key, 1, 60.0 if each.data == "1" else 0.0) for each in page.events
    ]
    engine.run(consumers.advance(lease, old=0, cursor=page.seen, asides=failed))
    assert [each.data for each in engine.run(asides.due_asides(lease))] == ["3", "4"]
    waiting = engine.run(asides.waiting(lease))
    assert waiting.keys == {"a", "b"} and waiting.count == waiting.failed == 4 and waiting.due_in_s == 0
    for each in page.events[2:]:
        engine.run(asides.end_aside(lease, each.seq))
    due_in_s = engine.run(asides.waiting(lease)).due_in_s
    assert due_in_s is not None and 0 < due_in_s <= 60, "who waits for another of its key is not due"
    clock.advance(61)
    assert [each.data for each in engine.run(asides.due_asides(lease))] == ["1"]
    engine.run(asides.postpone_aside(lease, page.events[0].seq, delay_s=0, parked=True, error="{}"))
    assert [each.data for each in engine.run(asides.due_asides(lease))] == ["2"], "parked: its key goes on"
    app.close()


def test_a_page_is_bounded_in_rows_bytes_and_places(app: App, engine: AnyEngine) -> None:
    publish_many(app, [NewEvent("t", "x" * 1000) for _ in range(10)] + [NewEvent("u", 1)] * 30)
    lease = group_of(engine)
    assert len(read(engine, lease, limit=4).events) == 4
    few = read(engine, lease, bytes_max=2500)
    assert len(few.events) == 3 and not few.is_last and few.seen == few.events[-1].seq
    page = read(engine, lease, few.seen + 7, span=10)
    assert page.events == () and page.seen == few.seen + 17 and not page.is_last
    assert read(engine, lease, page.seen, span=100).is_last
    app.close()


# --- retention -----------------------------------------------------------------------------------


def trimming(**how: Any) -> Any:
    return lag.trim(**{"age_s": 7 * DAY_S, "unread_age_s": 30 * DAY_S, "told_s": 3 * DAY_S, **how})


def test_what_all_have_read_goes_by_age(app: App, engine: AnyEngine, clock: DatabaseClock) -> None:
    publish_many(app, [NewEvent("t", number) for number in range(4)])
    lease = group_of(engine)
    other = group_of(engine, "slow")
    page = read(engine, lease)
    engine.run(consumers.advance(lease, old=0, cursor=page.seen))
    engine.run(consumers.advance(other, old=0, cursor=page.events[1].seq))
    assert engine.run(trimming()) == 0, "nothing is old"
    clock.advance(8 * DAY_S)
    assert engine.run(trimming(limit=1)) == 1 and engine.run(trimming()) == 1, (
        "as far as the slower one has read"
    )
    publish(app, "t", "next")
    assert [each.data for each in read(engine, lease, page.seen).events] == ['"next"'], (
        "no place is given twice"
    )
    app.close()


def test_what_is_unread_goes_only_after_an_alarm(app: App, engine: AnyEngine, clock: DatabaseClock) -> None:
    publish(app, "t", 1)
    group_of(engine)
    clock.advance(31 * DAY_S)
    (behind,) = engine.run(lag.lags())
    assert behind.events == 1 and behind.seconds > 30 * DAY_S
    assert engine.run(trimming()) == 0, "nobody was told"
    assert engine.run(lag.alarm("g")) is True and engine.run(lag.alarm("g")) is False
    assert engine.run(trimming()) == 0, "it was told just now"
    clock.advance(4 * DAY_S)
    assert engine.run(trimming()) == 1
    assert engine.run(lag.calm("g")) is True and engine.run(lag.calm("g")) is False
    app.close()


def test_parked_events_stay_until_they_are_given_up(
    app: App, engine: AnyEngine, clock: DatabaseClock
) -> None:
    publish(app, "t", 1)
    lease = group_of(engine)
    page = read(engine, lease)
    (stored,) = page.events
    parked = Aside(stored.seq, stored.id, None, 3, 0.0, True, '{"message":"no"}')
    engine.run(consumers.advance(lease, old=0, cursor=page.seen, asides=[parked]))
    clock.advance(8 * DAY_S)
    assert engine.run(trimming()) == 0
    assert engine.run(asides.discard(None, age_s=9 * DAY_S)) == 0
    assert engine.run(asides.discard("g", [stored.seq])) == 1
    assert engine.run(trimming()) == 1
    with pytest.raises(EventNotFound):
        EventBus(app).show(position=stored.seq)
    app.close()


def test_the_log_is_bounded_by_a_number_too(app: App, engine: AnyEngine) -> None:
    publish_many(app, [NewEvent("t", number) for number in range(10)])
    engine.run(sequence())
    assert engine.run(trimming(keep=4)) == 6
    found = EventBus(app).retention_estimate(keep=4)
    assert found.head == 10 and found.oldest_age_s is not None
    assert EventBus(app).show(position=10).data == "9"
    app.close()
