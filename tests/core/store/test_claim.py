"""What a claim takes, in which order, and how the arguments come with it."""

from __future__ import annotations

import threading

import pytest

from fencerow.core.model.codec import inline_args
from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.store.claims import Mark
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators import looking
from fencerow.operators.queues import pause_queue, paused_queues, resume_queue
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import Placed, rows
from tests.kit.jobs import AnyEngine, bury, claim, new_job, read, register, running, submit

KIB, MIB = 1024, 1024 * 1024


def ids(jobs: list[Claimed]) -> list[str]:
    return [job.id for job in jobs]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_the_limit_is_exact(engine: AnyEngine, limit: int) -> None:
    submit(engine, *(new_job(priority=number % 3) for number in range(20)))
    holder = register(engine)
    taken = claim(engine, holder, limit=limit, marks=[Mark(2), Mark(1), Mark(0)])
    assert len(taken) == limit
    assert len(engine.run(store.holdings(holder=holder))) == limit


def test_highest_priority_first_then_the_earliest_due_then_the_lowest_id(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    now = engine.run(store.clock())
    first, second = sorted((new_job(run_at_us=now + 5), new_job(run_at_us=now + 5)), key=lambda job: job.id)
    early, urgent = new_job(run_at_us=now + 1), new_job(run_at_us=now + 9, priority=50)
    submit(engine, second, urgent, first, early)
    clock.advance(1)

    taken = claim(engine, register(engine), marks=[Mark(50), Mark(0)])
    assert ids(taken) == [urgent.id, early.id, first.id, second.id]


def test_a_lane_that_is_not_asked_for_stays(engine: AnyEngine) -> None:
    submit(engine, low := new_job(priority=-5), new_job(priority=3))
    assert ids(claim(engine, register(engine), marks=[Mark(-5)])) == [low.id]


def test_lanes_tell_which_priorities_hold_jobs_and_when_the_first_is_due(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    now = engine.run(store.clock())
    submit(
        engine,
        new_job(priority=9, run_at_us=now + 500),
        new_job(priority=9, run_at_us=now + 400),
        new_job(priority=-1, run_at_us=now + 1),
        new_job(queue="other", priority=4),
    )
    lanes, database_now = engine.run(store.lanes("mail"))
    assert [(lane.priority, lane.first_us) for lane in lanes] == [(9, now + 400), (-1, now + 1)]
    assert now <= database_now < now + 60_000_000
    assert engine.run(store.lanes("nothing here")) == ([], 0)


def test_the_suspects_are_a_lane_of_their_own(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine))
    assert stage.reclaim(engine, Placed(job.id, holder, 1), clock)

    ((suspects,), _) = engine.run(store.lanes("mail"))
    assert (suspects.priority, suspects.name, suspects.first_us) == (0, "suspect:", job.run_at_us)
    assert claim(engine, register(engine)) == []


def test_a_mark_spares_what_lies_before_it_and_a_sweep_finds_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    now = engine.run(store.clock())
    jobs = [new_job(run_at_us=now + number) for number in range(4)]
    submit(engine, *jobs)
    clock.advance(1)
    holder = register(engine)

    after = claim(engine, holder, marks=[Mark(0, now + 1, jobs[1].id)])
    assert ids(after) == [jobs[2].id, jobs[3].id]
    assert ids(claim(engine, holder, marks=[Mark(0)])) == [jobs[0].id, jobs[1].id]


def test_only_the_named_jobs_are_taken(engine: AnyEngine) -> None:
    submit(engine, new_job(name="a"), b := new_job(name="b"), new_job(name="c"))
    assert ids(claim(engine, register(engine), names=["b", "z"])) == [b.id]


def test_nothing_is_taken_from_a_paused_queue_until_it_resumes(engine: AnyEngine) -> None:
    submit(engine, job := new_job(), other := new_job(queue="other"))
    holder = register(engine)
    assert engine.run(pause_queue("mail", actor="ada", reason="fire"))
    assert not engine.run(pause_queue("mail", actor="bob"))

    assert claim(engine, holder) == []
    assert ids(claim(engine, holder, queue="other")) == [other.id]
    (paused,) = engine.run(paused_queues())
    assert (paused.name, paused.paused_by, paused.reason) == ("mail", "ada", "fire")
    assert engine.run(resume_queue("mail")) and not engine.run(resume_queue("mail"))
    assert ids(claim(engine, holder)) == [job.id]


def test_a_claim_tells_what_the_handler_needs(engine: AnyEngine) -> None:
    submit(
        engine,
        job := new_job(
            '{"to":"ada"}',
            priority=3,
            attempts_max=5,
            snoozes_max=7,
            timeout_s=12.5,
            options='{"delay":1}',
            tags='["x","y"]',
            metadata='{"k":1}',
            headers='{"traceparent":"00"}',
        ),
    )
    holder = register(engine)
    (found,) = claim(engine, holder, marks=[Mark(3)], margin_s=60)

    assert (found.id, found.name, found.queue, found.attempt) == (job.id, "send", "mail", 1)
    assert (found.priority, found.attempts_max, found.snoozes_max) == (3, 5, 7)
    assert (found.timeout_s, found.suspect, found.failures) == (12.5, False, 0)
    assert bytes(found.options) == b'{"delay":1}'
    assert (found.tags, found.metadata, found.headers) == (["x", "y"], {"k": 1}, {"traceparent": "00"})
    record = read(engine, job.id)
    assert (record.state, record.holder) == (State.RUNNING, holder)
    assert record.claimed_at_us is not None and record.deadline_at_us is not None
    assert record.deadline_at_us - record.claimed_at_us == 72_500_000


EXACT = [
    '{"x":1e22,"y":-0.0,"z":1.0}',
    '{"b":1,"a":2,"B":3}',
    '{"ключ":"š 😀 \\u2028 \\\\ \\"","n":null}',
    '{"big":12345678901234567890123,"small":1E-7}',
    "[1,[2,[3]],{}]",
    '{"colon":":name","percent":"100 %s %","semicolon":";--"}',
]


@pytest.mark.parametrize("args", EXACT)
def test_the_arguments_come_byte_for_byte(engine: AnyEngine, args: str) -> None:
    job = running(engine, holder := register(engine), args=args)
    assert inline_args(job.args) == args.encode()
    assert engine.run(store.fetch_args(job.id, holder=holder, attempt=1)) == args


def text(size: int) -> str:
    return '{"x":"' + "a" * (size - 8) + '"}'


def test_large_arguments_are_fetched_at_start(engine: AnyEngine) -> None:
    submit(engine, fits := new_job(text(64 * KIB)), large := new_job(text(64 * KIB + 1)))
    holder = register(engine)
    taken = {job.id: job for job in claim(engine, holder)}

    assert inline_args(taken[fits.id].args) == fits.args.encode()
    assert inline_args(taken[large.id].args) is None
    assert engine.run(store.fetch_args(large.id, holder=holder, attempt=1)) == large.args


def test_a_claim_carries_at_most_eight_mebibytes(engine: AnyEngine) -> None:
    jobs = [new_job(text(60 * KIB)) for _ in range(150)]
    submit(engine, *jobs)
    taken = claim(engine, register(engine), limit=150)

    assert len(taken) == 150
    inline = sum(len(inline_args(job.args) or b"") for job in taken)
    if engine.dialect == "postgres":  # SQLite hands over rows one by one and holds no document of them all
        assert 7 * MIB < inline <= 8 * MIB


@pytest.mark.prove
def test_a_hundred_and_twenty_jobs_of_a_megabyte_can_be_claimed(engine: AnyEngine) -> None:
    body = text(1_000_000)
    for _ in range(12):
        submit(engine, *(new_job(body) for _ in range(10)))
    taken = claim(engine, holder := register(engine), limit=120)

    assert len(taken) == 120
    assert {inline_args(job.args) for job in taken} == {None}
    assert engine.run(store.fetch_args(taken[7].id, holder=holder, attempt=1)) == body


@pytest.mark.parametrize("broken", ["{", "", "NaN", '{"a":1}x'])
def test_a_malformed_stored_payload_hides_nobody(lite: SqliteEngine, broken: str) -> None:
    """Any tool can edit a SQLite file; PostgreSQL's json column holds nothing malformed."""
    bad, good = submit(lite, new_job(), new_job())
    rows(
        lite,
        "UPDATE {jobs} SET args = '" + broken.replace("{", "{{").replace("}", "}}") + f"' WHERE id = '{bad}'",
    )

    holder = register(lite)
    taken = {job.id: job for job in claim(lite, holder)}
    assert taken.keys() == {bad, good}
    assert inline_args(taken[bad].args) is None
    assert lite.run(store.fetch_args(bad, holder=holder, attempt=1)) == broken
    assert lite.run(store.read([bad, good])).keys() == {bad, good}
    assert len(lite.run(looking.list_jobs())) == 2


@pytest.mark.parametrize("column", ["options", "tags", "metadata", "headers"])
def test_a_malformed_side_column_hides_nobody_either(lite: SqliteEngine, column: str) -> None:
    bad, good = submit(lite, new_job(), new_job())
    rows(lite, f"UPDATE {{jobs}} SET {column} = '{{{{' WHERE id = '{bad}'")

    assert set(ids(claim(lite, register(lite)))) == {bad, good}
    assert lite.run(looking.search(tags='["x"]')).jobs == []
    assert lite.run(looking.search(metadata='{"x":1}')).jobs == []


@pytest.mark.parametrize("column", ["tags", "metadata", "headers"])
@pytest.mark.parametrize("value", ["7", '"text"', "[1,2]"])
def test_a_side_column_of_another_shape_hides_nobody(engine: AnyEngine, column: str, value: str) -> None:
    bad, good = submit(engine, new_job(), new_job(tags='["kept"]'))
    rows(engine, f"UPDATE {{jobs}} SET {column} = '{value}' WHERE id = '{bad}'")

    taken = {job.id: job for job in claim(engine, register(engine))}
    assert taken.keys() == {bad, good}
    assert getattr(taken[bad], column) in (None, {}, [])
    assert inline_args(taken[bad].args) == b'{"to":"ada"}'
    assert taken[good].tags == ["kept"]
    assert {job.id for job in engine.run(looking.list_jobs())} == {bad, good}
    assert getattr(read(engine, bad), column) is None


def test_a_worker_holds_no_more_suspects_than_it_may(engine: AnyEngine, clock: DatabaseClock) -> None:
    lost = register(engine)
    jobs = [running(engine, lost) for _ in range(6)]
    clock.advance(31)
    bury(engine)
    engine.run(store.reclaim([lost], limit=10, actor=None))
    one, two = register(engine), register(engine)

    def take(holder: str, at_most: int) -> list[int]:
        claimed = engine.run(
            store.claim_suspect("mail", holder=holder, names=["send"], margin_s=60, at_most=at_most)
        )
        return [order.index(each) for each in ids(claimed)]

    order = [each.id for each in jobs]
    assert take(one, 1) == [0]
    assert take(one, 1) == []
    assert take(two, 3) == [1, 2, 3]
    assert take(one, 2) == [4]
    assert take(two, 2) == []
    assert engine.run(store.succeed([Success(jobs[0].id, 2, "null")], holder=one))
    assert take(one, 2) == [5]


def test_no_job_is_taken_twice_by_many_at_once(engine: AnyEngine) -> None:
    submit(engine, *(new_job() for _ in range(60)))
    taken: list[str] = []

    def work() -> None:
        holder = register(engine)
        while found := claim(engine, holder, limit=3):
            taken.extend(ids(found))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken))
    # On PostgreSQL a claim may come back empty while others hold the last locks; a last look finds what is left.
    assert len(taken) + len(claim(engine, register(engine), limit=60)) == 60
