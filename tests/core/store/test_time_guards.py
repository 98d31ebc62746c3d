"""The guards of what goes by time although the database's clock may jump, and what turns red without each."""

from __future__ import annotations

import pytest

from fencerow.core.store import store
from fencerow.core.store.reap import LeaseAhead
from fencerow.db.due import OWN, Due
from fencerow.testing.clock import DatabaseClock
from fencerow.turns.affinity import fall_back
from tests.core.store import stage
from tests.core.store.stage import Placed
from tests.core.store.test_guards import Guard, Scenario, always
from tests.kit.jobs import LATE_US, AnyEngine, claim, new_job, overdue, read, register, running, submit

HOUR_S = 3600.0
SOON_S = 60.0  # a test may take so long
DAY_US = 86_400_000_000


def gone_back(engine: AnyEngine, clock: DatabaseClock) -> Due:
    """The clock goes back by an hour, and a worker carries its time on."""
    before_us = engine.run(store.clock())
    clock.advance(-HOUR_S)
    return Due(before_us + 1_000_000, engine.run(store.clock()))


def taken(engine: AnyEngine, due: Due) -> list[str]:
    """What a worker claims that carries this time on."""
    found = store.claim(
        "mail", [store.Mark(0)], holder=register(engine), names=["send"], limit=10, margin_s=60.0, due=due
    )
    return [job.id for job in engine.run(found)]


def test_what_was_due_is_claimed_though_the_clock_went_back(engine: AnyEngine, clock: DatabaseClock) -> None:
    ids = submit(engine, new_job(), new_job(delay_s=0.5))
    due = gone_back(engine, clock)

    assert claim(engine, register(engine)) == [], "by the clock alone it is due in an hour"
    assert taken(engine, due) == ids


@pytest.mark.parametrize("how", ["released", "taken from the dead", "never begun"])
def test_what_ran_before_is_due_when_it_comes_back(engine: AnyEngine, clock: DatabaseClock, how: str) -> None:
    """Whoever asks: a job that was claimed has been due, and a worker that came later carries nothing on."""
    job = running(engine, holder := register(engine))
    clock.advance(-HOUR_S)
    if how == "released":
        assert stage.release(engine, Placed(job.id, holder, 1))
    elif how == "never begun":
        engine.run(store.renew(holder=holder, stated=overdue((job.id, 1, False))))
        assert engine.run(store.time_out(limit=10, delay_s=1.0, actor=None))[0]
    else:
        engine.run(store.retire(holder=holder))
        assert engine.run(store.reclaim([holder], limit=10, actor=None))[0]
    suspects = store.claim_suspect("mail", holder=register(engine), names=["send"], margin_s=60.0)

    assert [each.id for each in [*claim(engine, register(engine)), *engine.run(suspects)]] == [job.id]


def test_a_suspect_that_was_due_is_claimed_as_well(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine))
    assert stage.reclaim(engine, Placed(job.id, holder, 1), clock)
    due = gone_back(engine, clock)
    suspects = store.claim_suspect("mail", holder=register(engine), names=["send"], margin_s=60.0, due=due)

    assert [each.id for each in engine.run(suspects)] == [job.id]


def a_retry_waits(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Its delay was reckoned by the clock as it is now."""
    submit(engine)
    due = gone_back(engine, clock)
    (job_id,) = taken(engine, due)
    job = read(engine, job_id)
    assert stage.retry(engine, Placed(job_id, job.holder or "", job.attempt))

    assert taken(engine, due) == []


def a_delay_waits(engine: AnyEngine, clock: DatabaseClock) -> None:
    due = gone_back(engine, clock)
    submit(engine, new_job(delay_s=600))

    assert taken(engine, due) == []


def fallen_back(engine: AnyEngine, due: Due) -> list[str]:
    return [job.id for job in engine.run(fall_back(actor="w", due=due))]


def anybody_may_take_what_waited_for_its_label(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Also a worker that came later, and carries nothing on."""
    waiting = submit(engine, new_job(affinity="gpu", affinity_wait_s=0.5))
    due = gone_back(engine, clock)

    assert fallen_back(engine, OWN) == []
    assert fallen_back(engine, due) == waiting
    assert [job.id for job in claim(engine, register(engine))] == waiting


def a_retry_waits_for_its_label(engine: AnyEngine, clock: DatabaseClock) -> None:
    """And so does what is submitted now: both know the clock as it is."""
    (job_id,) = submit(engine, new_job(affinity="gpu", affinity_wait_s=0.5))
    due = gone_back(engine, clock)
    assert fallen_back(engine, due) == taken(engine, OWN) == [job_id]
    job = read(engine, job_id)
    assert stage.retry(engine, Placed(job_id, job.holder or "", job.attempt))
    submit(engine, new_job(affinity="gpu", affinity_wait_s=SOON_S))

    assert fallen_back(engine, due) == []


def two_days_off_wait(engine: AnyEngine, clock: DatabaseClock) -> None:
    """The worker's own clock runs wild."""
    submit(engine, new_job(delay_s=2 * 86_400))
    now_us = engine.run(store.clock())

    assert taken(engine, Due(now_us + 30 * DAY_US, now_us)) == []


# --- leases from before ------------------------------------------------------------------------------


def ahead(engine: AnyEngine) -> list[LeaseAhead]:
    return engine.run(store.leases_ahead())


def test_a_lease_from_before_ends_when_nobody_renews_it(engine: AnyEngine, clock: DatabaseClock) -> None:
    dead = register(engine)
    assert ahead(engine) == []
    clock.advance(-HOUR_S)
    judge = register(engine)

    assert [each.holder for each in ahead(engine)] == [dead]
    assert engine.run(store.die(judge=judge, until_us=LATE_US)) == []
    assert engine.run(store.die_ahead(ahead(engine), judge=judge, until_us=LATE_US)) == [dead]
    assert engine.run(store.renew(holder=dead)) is None
    assert ahead(engine) == []


def renewed_meanwhile(engine: AnyEngine, clock: DatabaseClock) -> None:
    """And before the clock went back once more: its lease lies ahead again."""
    alive = register(engine)
    clock.advance(-HOUR_S)
    seen = ahead(engine)
    engine.run(store.renew(holder=alive))
    clock.advance(-HOUR_S)

    assert engine.run(store.die_ahead(seen, judge=register(engine), until_us=LATE_US)) == []


def lease_is_as_any(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Whose lease does not lie ahead is judged by the lease itself."""
    alive = register(engine)
    renewed = engine.run(store.renew(holder=alive))
    assert renewed is not None
    seen = [LeaseAhead(alive, renewed.at_us, 30.0)]

    assert engine.run(store.die_ahead(seen, judge=register(engine), until_us=LATE_US)) == []


def retired_already(engine: AnyEngine, clock: DatabaseClock) -> None:
    gone = register(engine)
    clock.advance(-HOUR_S)
    seen = ahead(engine)
    engine.run(store.retire(holder=gone))

    assert engine.run(store.die_ahead(seen, judge=register(engine), until_us=LATE_US)) == []


def judged(how: str) -> Scenario:
    def scenario(engine: AnyEngine, clock: DatabaseClock) -> None:
        register(engine)
        clock.advance(-HOUR_S)
        judge = register(engine)
        renewed = engine.run(store.renew(holder=judge))
        assert renewed is not None
        until_us = LATE_US
        if how == "by the retired":
            engine.run(store.retire(holder=judge))
        elif how == "by the late":
            clock.advance(31)
        else:
            until_us = renewed.at_us
        assert engine.run(store.die_ahead(ahead(engine), judge=judge, until_us=until_us)) == []

    return scenario


# --- what its holder calls overdue -------------------------------------------------------------------


def called_overdue_by(who: str) -> Scenario:
    def scenario(engine: AnyEngine, clock: DatabaseClock) -> None:
        holder = register(engine)
        first = running(engine, holder)
        assert stage.release(engine, Placed(first.id, holder, 1))
        (job,) = claim(engine, holder)
        teller = register(engine) if who == "another" else holder
        attempt = 1 if who == "an older attempt" else job.attempt
        engine.run(store.renew(holder=teller, stated=overdue((job.id, attempt, True))))
        if who == "the dead":
            engine.run(store.retire(holder=holder))
        assert engine.run(store.time_out(limit=10, delay_s=3, actor=None)) == ([], [])

    return scenario


SINCE = "COALESCE(claimed_at, revived_at, submitted_at) NOT BETWEEN"
SINCE_PG = f'{SINCE} "fencerow".at(CAST(:since_us AS bigint)) AND (SELECT "fencerow".now())'
SINCE_LITE = f"{SINCE} :since_us AND (SELECT fencerow_now())"
JUDGE_PG = "judge.lease_until > clock.now"
AHEAD_PG = 'worker.lease_until > clock.now + "fencerow".seconds(worker.lease_s)'
AHEAD_LITE = "lease_until > fencerow_now() + CAST(lease_s * 1000000 AS INTEGER)"

GUARDS = [
    Guard("claim", always(SINCE_PG), always(SINCE_LITE), a_retry_waits),
    Guard("claim", always(SINCE_PG), always(SINCE_LITE), a_delay_waits),
    Guard(
        "claim",
        (("INTERVAL '1 day'", "INTERVAL '100 days'"),),
        (("fencerow_now() + 86400000000", "fencerow_now() + 8640000000000"),),
        two_days_off_wait,
    ),
    Guard("fall_back", always(SINCE_PG), always(SINCE_LITE), a_retry_waits_for_its_label),
    Guard(
        "fall_back",
        (('least(job.run_at, "fencerow".now())', "job.run_at"),),
        (("min(run_at, fencerow_now())", "run_at"),),
        anybody_may_take_what_waited_for_its_label,
    ),
    Guard(
        "die_ahead",
        always('"fencerow".us(worker.renewed_at) = silent.renewed_us'),
        always("json_extract(silent.value, '$[1]') = fencerow_file.fencerow_workers.renewed_at"),
        renewed_meanwhile,
    ),
    Guard("die_ahead", always(AHEAD_PG), always(AHEAD_LITE), lease_is_as_any),
    Guard(
        "die_ahead",
        always("worker.state = 'alive'"),
        (("WHERE state = 'alive'", "WHERE true"),),
        retired_already,
    ),
    Guard(
        "die_ahead",
        always("judge.state = 'alive'"),
        always("judge.state = 'alive'"),
        judged("by the retired"),
    ),
    Guard("die_ahead", always(JUDGE_PG), always("judge.lease_until > fencerow_now()"), judged("by the late")),
    Guard(
        "die_ahead",
        always('clock.now < "fencerow".at(CAST(:until_us AS bigint))'),
        always("fencerow_now() < :until_us"),
        judged("after a jump"),
    ),
    Guard(
        "time_out",
        always("job.holder = overdue.holder"),
        always("job.holder = overdue.holder"),
        called_overdue_by("another"),
    ),
    Guard(
        "time_out",
        always("job.attempt = overdue.attempt"),
        always("job.attempt = overdue.attempt"),
        called_overdue_by("an older attempt"),
    ),
    Guard(
        "time_out",
        always("worker.state = 'alive'"),
        always("worker.state = 'alive'"),
        called_overdue_by("the dead"),
    ),
]
NAMED = [pytest.param(guard, id=f"{guard.query}-{number}") for number, guard in enumerate(GUARDS)]


@pytest.mark.parametrize("guard", NAMED)
def test_with_the_guard_the_scenario_holds(engine: AnyEngine, clock: DatabaseClock, guard: Guard) -> None:
    guard.scenario(engine, clock)
    guard.take_out(engine)  # it is still written so; the control plays what happens then


@pytest.mark.prove  # a control
@pytest.mark.parametrize("guard", NAMED)
def test_without_the_guard_the_scenario_turns_red(
    engine: AnyEngine, clock: DatabaseClock, guard: Guard
) -> None:
    guard.take_out(engine)
    with pytest.raises(AssertionError):
        guard.scenario(engine, clock)
