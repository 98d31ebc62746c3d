"""Change of a job that nobody runs: what it sets, what it tells, whom it refuses; on both engines."""

from __future__ import annotations

import json

import pytest

from fencerow.core.model.change import JobChanged, NewArguments
from fencerow.core.model.packed import fingerprint
from fencerow.core.model.state import FINAL, State
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.run import Operation
from fencerow.errors import IllegalMove, InvalidInput, JobNotFound
from fencerow.operators import changes, looking
from fencerow.operators.job_change import JobChange
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import bring
from tests.core.store.test_keys import keyed, submit_keyed
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit

HOUR_US = 3_600_000_000


def change(engine: AnyEngine, job_id: str, wanted: JobChange, reason: str | None = None) -> JobChanged:
    return engine.run(changes.change(job_id, wanted, actor="ada", reason=reason))


def arguments(text: str, version: int | None = None) -> JobChange:
    return JobChange(arguments=lambda _: NewArguments(text, version))


def now_us(engine: AnyEngine) -> int:
    return engine.run(store.clock())


def test_a_change_says_what_was_and_what_is(engine: AnyEngine, clock: DatabaseClock) -> None:
    (job_id,) = submit(engine, new_job(delay_s=60))
    before = read(engine, job_id)
    due_us = before.run_at_us + HOUR_US

    done = change(engine, job_id, JobChange(run_at_us=due_us, priority=5, queue="bulk"), "quieter there")

    assert done.changes == {
        "queue": ("mail", "bulk"),
        "priority": (0, 5),
        "run_at_us": (before.run_at_us, due_us),
    }
    found = read(engine, job_id)
    assert (found.queue, found.priority, found.run_at_us) == ("bulk", 5, due_us)
    assert (found.state, found.attempt, found.args) == (State.QUEUED, 0, before.args)
    (event,) = engine.run(looking.events(job_id))
    assert (event.kind, event.actor, event.attempt) == ("changed", "ada", 0)
    assert event.detail == {
        "queue": ["mail", "bulk"],
        "priority": [0, 5],
        "run_at_us": [before.run_at_us, due_us],
        "reason": "quieter there",
    }


def test_a_change_to_what_was_there_changes_and_tells_nothing(engine: AnyEngine) -> None:
    (job_id,) = submit(engine)
    same = JobChange(priority=0, queue="mail", run_at_us=read(engine, job_id).run_at_us)
    before = stage.dump(engine)

    assert change(engine, job_id, same).changes == {}
    assert change(engine, job_id, arguments('{"to":"ada"}', 1)).changes == {}

    assert stage.dump(engine) == before
    assert engine.run(looking.events(job_id)) == []


def test_run_now_makes_a_later_job_due_and_leaves_the_place_of_one_that_is(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (early,) = submit(engine)
    due_us = read(engine, early).run_at_us
    clock.advance(10)
    (later,) = submit(engine, new_job(delay_s=3600))

    assert change(engine, later, JobChange(at_once=True)).run_at_us <= now_us(engine)
    assert change(engine, early, JobChange(at_once=True)).changes == {}

    assert read(engine, early).run_at_us == due_us
    assert [job.id for job in claim(engine, register(engine))] == [early, later]


def test_a_delay_counts_from_now(engine: AnyEngine, clock: DatabaseClock) -> None:
    (job_id,) = submit(engine)
    clock.advance(100)
    before_us = now_us(engine)

    done = change(engine, job_id, JobChange(delay_s=60.0))

    assert before_us + 60_000_000 <= done.run_at_us <= now_us(engine) + 60_000_000
    assert claim(engine, register(engine)) == []


def test_a_job_with_another_priority_lies_in_that_lane(engine: AnyEngine) -> None:
    first, second = submit(engine, new_job(), new_job())
    change(engine, second, JobChange(priority=9))
    marks = [Mark(9), Mark(0)]
    assert [job.id for job in claim(engine, register(engine), marks=marks, limit=1)] == [second]
    assert [job.id for job in claim(engine, register(engine), marks=marks, limit=1)] == [first]


@pytest.mark.parametrize("state", sorted({State.RUNNING, *FINAL}))
def test_what_runs_or_has_ended_is_refused_with_its_state(engine: AnyEngine, state: State) -> None:
    job = bring(engine, state)
    before = stage.dump(engine)

    with pytest.raises(IllegalMove) as refused:
        change(engine, job.id, JobChange(priority=5))

    assert refused.value.state == state
    assert stage.dump(engine) == before


def test_a_job_that_is_nowhere_is_not_found(engine: AnyEngine) -> None:
    with pytest.raises(JobNotFound):
        change(engine, new_job().id, JobChange(priority=5))


@pytest.mark.parametrize("late", ["run_at", "delay"])
def test_a_job_is_not_put_behind_its_expiry(engine: AnyEngine, clock: DatabaseClock, late: str) -> None:
    (job_id,) = submit(engine, new_job(expires_s=60))
    wanted = JobChange(delay_s=61.0) if late == "delay" else JobChange(run_at_us=now_us(engine) + 61_000_000)
    before = stage.dump(engine)

    with pytest.raises(InvalidInput, match="expire"):
        change(engine, job_id, wanted)
    assert engine.run(changes.change_many([job_id], wanted, actor=None)) == []

    assert stage.dump(engine) == before
    assert change(engine, job_id, JobChange(delay_s=59.0)).changes


def test_a_suspect_stays_suspect(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.RUNNING)
    assert stage.reclaim(engine, job, clock)

    change(engine, job.id, JobChange(priority=5, at_once=True))

    assert read(engine, job.id).suspect
    assert claim(engine, register(engine), marks=[Mark(5)]) == []


# --- new arguments -----------------------------------------------------------------------------------


def test_new_arguments_are_kept_byte_for_byte_and_shown_by_size(engine: AnyEngine) -> None:
    (job_id,) = submit(engine, new_job('{"to":"ada"}'))
    text = '{"to":"eve","n":1e22,"z":-0.0}'

    done = change(engine, job_id, arguments(text))

    assert done.changes == {"args_bytes": (12, len(text))}
    stored = stage.rows(engine, "SELECT args, args_bytes FROM {jobs}")[0]
    assert (stored["args_bytes"], read(engine, job_id).args) == (len(text), json.loads(text))
    assert stored["args"] == (text if engine.dialect == "sqlite" else json.loads(text))
    (event,) = engine.run(looking.events(job_id))
    assert event.detail == {
        "args_bytes": [12, len(text)],
        "args_was": fingerprint("send", b'{"to":"ada"}'),
    }
    (claimed,) = claim(engine, register(engine))
    assert bytes(claimed.args) == text.encode()


@pytest.mark.parametrize(
    ("before", "version", "after"),
    [
        (None, 3, {"args_version": 3}),
        ('{"args_version":2}', None, {"args_version": 2}),
        ('{"args_version":2}', 1, None),
        ('{"args_version":2,"base_s":1.5}', 3, {"args_version": 3, "base_s": 1.5}),
        ('{"base_s":1.5}', 1, {"base_s": 1.5}),
    ],
)
def test_the_version_of_the_arguments_goes_with_them(
    engine: AnyEngine, before: str | None, version: int | None, after: object
) -> None:
    (job_id,) = submit(engine, new_job(options=before))
    change(engine, job_id, arguments('{"to":"eve"}', version))
    assert read(engine, job_id).options == after


def test_a_key_stays_with_what_was_submitted_under_it(engine: AnyEngine) -> None:
    job, key = keyed()
    submit_keyed(engine, (job, key))

    change(engine, job.id, arguments('{"to":"eve"}'))

    again, same_key = keyed()
    (answer,) = submit_keyed(engine, (again, same_key))
    assert (answer.id, answer.replay) == (job.id, True)


def test_a_repeated_submit_under_an_own_id_is_known_by_what_was_submitted(engine: AnyEngine) -> None:
    own = new_job('{"to":"ada"}')
    submit(engine, own)
    change(engine, own.id, arguments('{"to":"eve"}'))
    change(engine, own.id, arguments('{"to":"bob"}'))

    assert engine.run(store.resubmit([own], own={own.id})) == []
    other = new_job('{"to":"nobody"}', id=own.id)
    with pytest.raises(InvalidInput, match="belongs to another job"):
        engine.run(store.resubmit([other], own={own.id}))


# --- many --------------------------------------------------------------------------------------------


def test_many_are_changed_in_one_statement_each_for_itself(engine: AnyEngine) -> None:
    ids = submit(engine, new_job(), new_job(options='{"base_s":2.0}'), new_job(name="other"))
    ran = bring(engine, State.RUNNING)

    def by_name(name: str) -> NewArguments:
        if name == "other":
            raise InvalidInput("not for this one")
        return NewArguments('{"to":"eve"}', 2)

    many: Operation[list[JobChanged]] = changes.change_many(
        [*ids, ran.id], JobChange(priority=4, arguments=by_name), actor="ada"
    )
    done = engine.run(many)

    assert sorted(each.id for each in done) == sorted(ids[:2])
    assert [read(engine, each).priority for each in [*ids, ran.id]] == [4, 4, 0, 0]
    assert [read(engine, each).options for each in ids[:2]] == [
        {"args_version": 2},
        {"args_version": 2, "base_s": 2.0},
    ]
