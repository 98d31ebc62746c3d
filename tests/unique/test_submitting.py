"""Unique jobs in the store: what a submit under a key comes to, by how the job of the key stands."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from fencerow.core.model.job import KeyClaim
from fencerow.core.model.state import State
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeue, Success
from fencerow.core.store.storing import storing_once
from fencerow.core.store.submit import as_document
from fencerow.db.queries import pyformat
from fencerow.db.removal import Looked
from fencerow.retention.purging import purge_by_age
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from fencerow.unique.keys import purge_unique
from fencerow.unique.rules import UniqueClaim, UniqueRule
from tests.core.store.stage import rows
from tests.kit.asked import as_unique
from tests.kit.jobs import AnyEngine, claim, new_job, read, register

KEEP, REPLACE = UniqueRule(), UniqueRule(replaces=True)
THROTTLE = UniqueRule(period_s=6000.0)
DEBOUNCE = UniqueRule(replaces=True, put_off_s=1000.0, put_off_max_s=2500.0)
UNTIL_START = UniqueRule(states=("waiting", "queued"))
ALWAYS = UniqueRule(states=("waiting", "queued", "running", "succeeded", "failed", "cancelled"))


def asked(
    rule: UniqueRule = KEEP, args: str = '{"to":"ada"}', *, unique: str = "u", **changes: Any
) -> Submission:
    if rule.put_off_s is not None:
        changes["delay_s"] = rule.put_off_s
    return as_unique(new_job(args, **changes), UniqueClaim(scope="s", key=unique, rule=rule))


def submit(
    engine: AnyEngine, *jobs: Submission, again: bool = False, own: Collection[str] = ()
) -> list[SubmitResult]:
    given = [msgspec.structs.replace(each, own_id=each.job.id in own) for each in jobs]
    return engine.run((store.resubmit_asked if again else store.submit_asked)(given))


def answers(engine: AnyEngine, *jobs: Submission, **more: Any) -> list[str]:
    return [said(each) for each in submit(engine, *jobs, **more)]


def said(answer: SubmitResult) -> str:
    return "replaced" if answer.replaced else "existing" if answer.replay else "inserted"


def live(engine: AnyEngine) -> int:
    return len(rows(engine, "SELECT id FROM {jobs}"))


def started(engine: AnyEngine) -> tuple[str, str]:
    """The holder that has claimed the one job that is due, and its id."""
    holder = register(engine)
    (job,) = claim(engine, holder)
    return holder, job.id


def succeed(engine: AnyEngine, holder: str, job_id: str) -> None:
    assert engine.run(store.succeed([Success(job_id, 1, "1")], holder=holder))


@pytest.mark.parametrize(
    ("rule", "queued", "running", "retrying", "succeeded"),
    [
        (KEEP, "existing", "existing", "existing", "inserted"),
        (UNTIL_START, "existing", "inserted", "existing", "inserted"),
        (ALWAYS, "existing", "existing", "existing", "existing"),
        (THROTTLE, "existing", "existing", "existing", "existing"),
        (REPLACE, "replaced", "inserted", "inserted", "inserted"),
        (DEBOUNCE, "replaced", "inserted", "inserted", "inserted"),
    ],
)
def test_what_a_submit_comes_to_follows_from_how_the_first_stands(
    engine: AnyEngine,
    clock: DatabaseClock,
    rule: UniqueRule,
    queued: str,
    running: str,
    retrying: str,
    succeeded: str,
) -> None:
    holder, of = register(engine), {at: [asked(rule, unique=at)] for at in ("a", "b", "c", "d")}
    expected = dict(zip(of, (queued, running, retrying, succeeded), strict=True))
    submit(engine, *of["b"], *of["c"], *of["d"])
    clock.advance(rule.put_off_s or 0.0)
    claim(engine, holder)
    again = Requeue(id=of["c"][0].job.id, attempt=1, kind="retried", delay_s=5.0, failures=1)
    assert engine.run(store.requeue([again], holder=holder))
    succeed(engine, holder, of["d"][0].job.id)
    submit(engine, *of["a"])

    assert {at: answers(engine, asked(rule, unique=at))[0] for at in of} == expected


def test_only_the_same_key_and_scope_are_the_same(engine: AnyEngine) -> None:
    other = as_unique(new_job(), UniqueClaim(scope="t", key="u", rule=KEEP))
    assert answers(engine, asked(), asked(unique="v"), other, Submission(new_job()), asked()) == [
        *["inserted"] * 4,
        "existing",
    ]
    assert live(engine) == 4


def test_the_new_job_of_a_key_is_the_one_that_counts(engine: AnyEngine) -> None:
    submit(engine, asked())
    succeed(engine, *started(engine))
    (second,) = submit(engine, asked())
    assert submit(engine, asked()) == [SubmitResult(second.id, replay=True)]


def test_a_replaced_job_is_what_the_last_submit_says(engine: AnyEngine) -> None:
    (first,) = submit(engine, asked(REPLACE, '{"to":"ada"}', queue="slow", priority=1, key="k", scope="s"))
    newer = asked(REPLACE, '{"to":"bob"}', attempts_max=9, tags='["x"]', submitted_by="eve")
    assert submit(engine, newer) == [SubmitResult(first.id, replay=True, replaced=True)]

    job = read(engine, first.id)
    assert (job.queue, job.priority, job.attempts_max, job.tags) == ("mail", 0, 9, ["x"])
    assert job.args == {"to": "bob"}
    assert (job.scope, job.key) == ("s", "k")  # its own idempotency key goes on to be its own
    assert rows(engine, "SELECT kind, actor FROM {job_events}") == [{"kind": "replaced", "actor": "eve"}]
    assert [each.id for each in claim(engine, register(engine))] == [first.id]


def test_a_replaced_job_gives_its_turn_up_for_those_it_needs_now(engine: AnyEngine) -> None:
    (first,) = submit(engine, asked(REPLACE, exclusive="a"))
    (behind,) = submit(engine, asked(exclusive="a", unique="v"))
    assert [job.id for job in engine.run(handing.hand_over()).queued] == [first.id]

    assert answers(engine, asked(REPLACE, exclusive="b")) == ["replaced"]

    assert {job.id for job in engine.run(handing.hand_over()).queued} == {first.id, behind.id}
    assert read(engine, first.id).exclusive == "b"


def test_submits_that_keep_coming_put_a_job_off_no_longer_than_its_greatest_delay(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first,) = submit(engine, asked(DEBOUNCE))
    due = [read(engine, first.id).run_at_us]
    for _ in range(3):
        clock.advance(800.0)
        assert answers(engine, asked(DEBOUNCE)) == ["replaced"]
        due.append(read(engine, first.id).run_at_us)
    delays = [round((us - due[0]) / 1e6, 1) for us in due]
    assert delays == pytest.approx([0.0, 800.0, 1500.0, 1500.0], abs=100.0)


def test_a_throttled_submit_finds_the_first_until_the_period_is_over(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first,) = submit(engine, asked(THROTTLE))
    succeed(engine, *started(engine))
    engine.run(store.delete([first.id]))
    clock.advance(3000.0)
    assert submit(engine, asked(THROTTLE)) == [SubmitResult(first.id, replay=True)]
    clock.advance(3001.0)
    assert answers(engine, asked(THROTTLE), asked(THROTTLE)) == ["inserted", "existing"]


@pytest.mark.parametrize(
    ("rule", "expected", "kept"),
    [
        (KEEP, ["inserted", "existing", "existing"], "1"),
        (THROTTLE, ["inserted", "existing", "existing"], "1"),
        (REPLACE, ["inserted", "replaced", "replaced"], "3"),
        (UniqueRule(states=("running",)), ["inserted"] * 3, "3"),
    ],
)
def test_a_batch_decides_its_jobs_in_their_order(
    engine: AnyEngine, rule: UniqueRule, expected: list[str], kept: str
) -> None:
    batch = [asked(rule, args) for args in ("1", "2", "3")]
    assert answers(engine, *batch) == expected
    owner = submit(engine, asked(KEEP))[0].id
    assert str(read(engine, owner).args) == kept


def test_an_idempotency_key_goes_to_the_job_that_is_there(engine: AnyEngine, clock: DatabaseClock) -> None:
    (first,) = submit(engine, asked())

    def keyed() -> Submission:
        plain = asked(scope="s", key="k")
        claimed = KeyClaim(scope="s", key="k", job_id=plain.job.id, fingerprint="f", lifetime_s=6000.0)
        return Submission(plain.job, claimed)

    assert submit(engine, keyed()) == [SubmitResult(first.id, replay=True)]
    succeed(engine, *started(engine))
    assert submit(engine, keyed()) == [
        SubmitResult(first.id, replay=True)
    ]  # by the key, for as long as that lives
    clock.advance(6001.0)
    (second,) = submit(engine, keyed())
    assert second.id != first.id
    assert not second.replay


@pytest.mark.parametrize("rule", [KEEP, REPLACE, THROTTLE])
def test_a_repeat_after_a_lost_answer_comes_to_the_same(engine: AnyEngine, rule: UniqueRule) -> None:
    first, second = asked(rule, "1"), asked(rule, "2")
    submit(engine, first)
    once = submit(engine, second)
    holder, job_id = started(engine)
    succeed(engine, holder, job_id)

    if rule is not KEEP:
        assert submit(engine, second, again=True) == once
    assert engine.run(storing_once([first], again=True)) == [SubmitResult(first.job.id)], (
        "it finds no job but its own"
    )
    assert submit(engine, first, again=True) == [SubmitResult(first.job.id)]
    assert answers(engine, first, own={first.job.id}) == ["existing"]
    assert live(engine) == 0 or rule is KEEP


FIRST = ("", "")


def keys(engine: AnyEngine) -> list[Any]:
    return [row["key"] for row in rows(engine, "SELECT key FROM {unique_jobs} ORDER BY key")]


def test_keys_of_jobs_that_are_gone_are_forgotten(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, asked(unique="gone"), asked(THROTTLE, unique="period"))
    holder = register(engine)
    for job in claim(engine, holder):
        succeed(engine, holder, job.id)
    submit(engine, asked(unique="live"))
    assert engine.run(purge_unique(FIRST, limit=10)).after == FIRST
    assert keys(engine) == ["gone", "live", "period"]  # finished ones are there still

    clock.advance(1.0)
    engine.run(purge_by_age(State.SUCCEEDED, age_s=0.5, limit=10))
    assert engine.run(purge_unique(FIRST, limit=2)) == Looked(("s", "live"), 2, 1)
    assert engine.run(purge_unique(("s", "live"), limit=2)) == Looked(FIRST, 1, 0)
    assert keys(engine) == ["live", "period"]
    clock.advance(6000.0)
    engine.run(purge_unique(FIRST, limit=10))
    assert keys(engine) == ["live"]


# --- many at once ----------------------------------------------------------------------------------------


def test_many_jobs_are_replaced_each_by_its_own(engine: AnyEngine) -> None:
    """And not each by a look through all that come: 4,000 would be 16 million looks."""
    old = [asked(REPLACE, f'{{"to":"{n}"}}', unique=str(n)) for n in range(50)]
    new = [asked(REPLACE, f'{{"to":"new {n}"}}', unique=str(n), priority=n) for n in range(50)]
    submit(engine, *old)

    assert set(answers(engine, *new)) == {"replaced"}
    for n, each in enumerate(old):
        job = read(engine, each.job.id)
        assert (job.args, job.priority) == ({"to": f"new {n}"}, n)
    plan = plan_of(engine, "replace_jobs", {"jobs": as_document([each.job for each in new])})
    assert not re.search("SubPlan [0-9]+.*\n.*CTE Scan on given|CORRELATED", plan), plan


def test_the_columns_of_what_comes_stand_in_the_order_of_those_that_are_set(engine: AnyEngine) -> None:
    """Else a job that is replaced would have one value in the place of another."""
    text = engine.queries["replace_jobs"].statements[0]
    found = re.search(r"SET \(([^)]+)\) = (?:ROW)?\(([^)]+)\)", text)
    assert found is not None
    names, given = ([each.strip() for each in found[n].split(",")] for n in (1, 2))

    assert given == [f"given.{name}" for name in names]


def plan_of(engine: AnyEngine, name: str, given: dict[str, str]) -> str:
    """How a statement is carried out with these parameters."""
    (text,) = engine.queries[name].statements
    with engine.session() as session:
        if engine.dialect == "postgres":
            cursor = session.connection.execute("EXPLAIN (COSTS OFF) " + pyformat(text), given)
        else:
            cursor = session.connection.execute("EXPLAIN QUERY PLAN " + text, given)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())
