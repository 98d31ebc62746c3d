"""Real runs with a guard taken out of one statement: the checker must say which promise that broke.

Each case is played twice, in the same order: as it is, where the checker finds nothing, and seeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Steps, execute, operation
from fencerow.errors import InvalidInput, KeyConflict
from fencerow.operators import looking
from fencerow.retention.purging import purge_spent
from fencerow.testing.clock import clock_of
from fencerow_proof.history import recorder
from fencerow_proof.history.final import create_effects
from tests.kit.jobs import AnyEngine, new_job
from tests.proof.history.play import Cut, Play, altered

FENCE = "\n      AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = outcome.attempt"
STEP_S = 36.0
ALIVE = "worker.state = 'alive')"


@dataclass(frozen=True)
class Seed:
    """What is taken out, what is played, and which invariants must be found broken."""

    cuts: list[Cut]
    script: Callable[[Play], Any]
    broken: set[str]
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def zombie(play: Play) -> None:
    """An attempt that was superseded reports its success while the newer one runs."""
    old, new = play.worker(lease_s=0.0), play.worker()
    job = play.submit()
    play.claim(old)
    play.bury(old)
    play.suspect(new)
    play.succeed(job, 1, old)
    play.succeed(job, 2, new)


def zombie_note(play: Play) -> None:
    old, new = play.worker(lease_s=0.0), play.worker()
    job = play.submit()
    play.claim(old)
    play.bury(old)
    play.suspect(new)
    play.run(store.progress(job, holder=old, attempt=1, percent=50.0, note=None))
    play.succeed(job, 2, new)


def double_claim(play: Play) -> None:
    one, other = play.worker(), play.worker()
    job = play.submit()
    play.claim(one)
    play.claim(other)
    if not play.succeed(job, 1, one):
        play.succeed(job, 2, other)


def claim_by_the_dead(play: Play) -> None:
    gone = play.worker(lease_s=0.0)
    play.submit()
    play.die()
    for job in play.claim(gone):
        play.succeed(job.id, job.attempt, gone)
    play.finish()


def renewal_of_the_dead(play: Play) -> None:
    gone = play.worker(lease_s=0.0)
    play.die()
    play.run(store.renew(holder=gone))


def early_death(play: Play) -> None:
    play.worker(lease_s=30.0)
    play.die()


def robbery(play: Play) -> None:
    """A reclaim that names one dead holder, while another lives."""
    living, gone = play.worker(), play.worker(lease_s=0.0)
    job = play.submit()
    play.claim(living)
    play.bury(gone)
    play.succeed(job, 1, living)
    play.finish()


def final_failure(play: Play) -> None:
    holder, job = play.worker(), play.submit()
    play.claim(holder)
    play.fail(job, 1, holder)


def success(play: Play) -> None:
    holder, job = play.worker(), play.submit()
    play.claim(holder)
    play.succeed(job, 1, holder)


def repeated_submit(play: Play) -> None:
    """A submit whose answer was lost is repeated after the job has ended."""
    holder, job = play.worker(), new_job()
    play.run(store.submit([job]))
    play.claim(holder)
    play.succeed(job.id, 1, holder)
    play.run(store.resubmit([job]))
    with suppress(psycopg.Error):  # the second run cannot be stored beside the first
        play.finish()


def late_cancel(play: Play) -> None:
    holder, job = play.worker(), play.submit()
    play.claim(holder)
    play.run(store.cancel(job, actor="t"))
    play.run(store.stop([store.Stop(job, 1)], holder=holder))


def retry_after_cancel(play: Play) -> None:
    holder, job = play.worker(), play.submit()
    play.claim(holder)
    play.run(store.cancel(job, actor="t"))
    play.retry(job, 1, holder)
    play.run(store.stop([store.Stop(job, 1)], holder=holder))
    play.finish()


def retries(play: Play) -> None:
    holder, job = play.worker(), play.submit()
    for attempt in (1, 2):
        for claimed in play.claim(holder):
            if attempt == 1:
                play.retry(job, claimed.attempt, holder)
            else:
                play.succeed(job, claimed.attempt, holder)


def revival(play: Play) -> None:
    success(play)
    (job,) = play.run(looking.list_jobs())
    play.run(store.revive(job.id, actor="t"))
    play.finish()


def same_key(play: Play) -> None:
    play.keyed("k")
    play.keyed("k")
    play.finish()


def other_payload(play: Play) -> None:
    play.keyed("k", "f")
    with suppress(KeyConflict):
        play.keyed("k", "g")
    play.finish()


def two_suspects(play: Play) -> None:
    old, new = play.worker(lease_s=0.0), play.worker()
    jobs = [play.submit(), play.submit()]
    play.claim(old, limit=2)
    play.bury(old)
    taken = play.suspect(new) + play.suspect(new)
    for each in taken:
        play.succeed(each.id, each.attempt, new)
    play.finish()
    assert len(jobs) == 2


def counters(play: Play) -> None:
    success(play)


def budget(play: Play) -> None:
    """A job that has its worker for itself dies as often as it may."""
    job = play.submit(crashes_max=1)
    for number in range(3):
        holder = play.worker(lease_s=0.0)
        claimed = play.claim(holder) if number == 0 else play.suspect(holder)
        for each in claimed:
            play.run(store.note_alone(each.id, holder=holder, attempt=each.attempt))
            play.bury(holder)
    assert job
    play.finish()


def greedy(play: Play) -> None:
    """The claim itself notices that it took too many, too late: they run, and nobody knows them."""
    holder = play.worker()
    for _ in range(3):
        play.submit()
    with suppress(AssertionError):
        for job in play.claim(holder, limit=2):
            play.succeed(job.id, job.attempt, holder)
    play.finish()


def abandoned(play: Play) -> None:
    """A worker falls silent; another renews and sweeps for longer than the bound."""
    # A renewal that comes later than half a lease after the last would be a gap: a busy machine has minutes.
    silent, awake = play.worker(lease_s=180.0), play.worker(lease_s=600.0)
    play.submit()
    play.claim(silent)
    clock, passed_us = clock_of(play.engine.inner), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "now_us", lambda: time.monotonic_ns() // 1000 + passed_us)
        for _ in range(35):
            play.run(store.renew(holder=awake))
            play.die()
            dead = play.run(store.dead_holders())
            play.run(store.reclaim(dead, limit=10, actor="t"))
            clock.advance(STEP_S)  # that of the database
            passed_us += round(STEP_S * 1e6)  # and that of the machine, which the checker measures by
        play.finish()
    clock.close()


SEEDS: dict[str, Seed] = {
    "claim beyond its limit": Seed(
        [
            (
                "claim",
                "LIMIT CAST(lane.mark ->> 4 AS integer)\n                FOR",
                "LIMIT 10 * CAST(lane.mark ->> 4 AS integer)\n                FOR",
            ),
            (
                "claim",
                "LIMIT CAST(:limit AS integer)\n        ) ||",
                "LIMIT 10 * CAST(:limit AS integer)\n        ) ||",
            ),
        ],
        greedy,
        {"I17"},
    ),
    "nobody takes back": Seed(
        [("reclaim", "ORDER BY waited DESC", "AND false ORDER BY waited DESC")],
        abandoned,
        {"I1", "I9"},
    ),
    "leases that overlap by the database's clock": Seed(
        [("claim", "claimed_at = clock.now,", "claimed_at = clock.now - INTERVAL '1 hour',")], retries, {"I3"}
    ),
    "a timeline that lies": Seed([("requeue", "moved.kind, CAST", "'cancelled', CAST")], retries, {"I4"}),
    "finish without the fence": Seed([("succeed", FENCE, "")], zombie, {"I2"}),
    "progress without the fence": Seed(
        [
            (
                "progress",
                "\n      AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = CAST(:attempt AS bigint)",
                "",
            ),
            ("progress", "SELECT held.id, held.attempt,", "SELECT held.id, CAST(:attempt AS bigint),"),
            ("progress", "WHERE known", "WHERE :holder <> '' AND known"),
        ],
        zombie_note,
        {"I2"},
    ),
    "claim without the state": Seed(
        [
            ("claim", "AND queued.state = 'queued'\n", "\n"),
            ("claim", "(job.state IS NOT DISTINCT FROM 'queued' AND", "(true AND"),
        ],
        double_claim,
        {"I3"},
    ),
    "claim without a living worker": Seed([("claim", ALIVE, "true)")], claim_by_the_dead, {"I3"}),
    "renewal of the dead": Seed([("renew", "AND worker.state = 'alive'", "")], renewal_of_the_dead, {"I3"}),
    "death without the lease": Seed(
        [
            ("die", "AND late.lease_until <", "AND TIMESTAMPTZ 'epoch' <"),
            ("die", "AND worker.lease_until <", "AND TIMESTAMPTZ 'epoch' <"),
        ],
        early_death,
        {"I3"},
    ),
    "reclaim without the holder": Seed(
        [
            (
                "reclaim",
                "job.holder = ANY(CAST(:dead AS uuid[]))\n      AND job.state = 'running'\n    ORDER",
                "CAST(:dead AS uuid[]) IS NOT NULL\n      AND job.state = 'running'\n    ORDER",
            ),
            ("reclaim", "\n      AND job.holder = ANY(CAST(:dead AS uuid[]))", ""),
        ],
        robbery,
        {"I3"},
    ),
    "archive that loses the row": Seed(
        [
            (
                "archive",
                "FROM ended\nWHERE NOT EXISTS",
                "FROM ended\nWHERE false AND NOT EXISTS",
            )
        ],
        final_failure,
        {"I1", "I15"},
    ),
    "success that loses the row": Seed(
        [("succeed", "WHERE awaited OR NOT ephemeral", "WHERE false")],
        success,
        {"I1", "I15"},
    ),
    "failure without archive": Seed(
        [("archive", "AND job.state IN ('succeeded', 'failed', 'cancelled')", "AND false")],
        final_failure,
        {"I4"},
    ),
    "resubmit without the second look": Seed(
        [("withdraw", "AND job.attempt = 0", "AND false")], repeated_submit, {"I2", "I6"}
    ),
    "cancel of a running job": Seed(
        [("cancel_idle", "AND job.state IN ('waiting', 'queued')", "")], late_cancel, {"I8"}
    ),
    "retry although a cancel was asked": Seed(
        [("requeue", "AND job.cancel_requested_at IS NULL", "")], retry_after_cancel, {"I4"}
    ),
    "claim that does not count": Seed(
        [("claim", "attempt = job.attempt + 1", "attempt = 1")], retries, {"I6"}
    ),
    "revive that starts the attempts anew": Seed(
        [
            (
                "revive",
                "priority, awaited, clock.now, attempt,",
                "priority, awaited, clock.now, 0,",
            ),
        ],
        revival,
        {"I6"},
    ),
    "a key that changes its owner": Seed(
        [
            (
                "reserve_keys",
                "ON CONFLICT (scope, key) DO NOTHING",
                "ON CONFLICT (scope, key) DO UPDATE SET job_id = EXCLUDED.job_id",
            )
        ],
        same_key,
        {"I7"},
    ),
    "two suspects of one worker": Seed(
        [("count_suspects", "AND job.state = 'running' AND job.suspect", "AND false")],
        two_suspects,
        {"I14"},
    ),
    "a crash that counts too often": Seed(
        [("reclaim", "crashes = job.crashes + ", "crashes = 7 + job.crashes + ")], budget, {"I4"}
    ),
    "counters that forget": Seed(
        [("finished_counts", "GROUP BY", "WHERE job.state = 'failed' GROUP BY")],
        counters,
        {"I15"},
    ),
}


def test_an_ephemeral_job_is_not_lost(engine: AnyEngine, tmp_path: Path) -> None:
    """Its success leaves its id and nothing else; purged, not even that."""
    play = Play(engine, tmp_path)
    jobs = [play.submit(ephemeral=True) for _ in range(2)]
    play.finish()
    report = play.judge()
    assert report.is_clean, report.text()
    assert report.looked["I1"] == len(jobs)
    play.run(purge_spent(age_s=-1.0, limit=10))
    assert play.judge().is_clean


@operation(alone=True)
def submit_and_refuse() -> Steps[None]:
    """A refusal after a change, in an operation that is wrongly said to be one statement."""
    yield from store.submit([new_job()]).steps()
    yield from execute("clock")
    raise InvalidInput("no", "", "")


def test_a_refusal_that_left_a_row_is_found(pg: PostgresEngine, tmp_path: Path) -> None:
    for broken, unit in (
        (set[str](), replace(submit_and_refuse(), alone=False)),
        ({"I17"}, submit_and_refuse()),
    ):
        play = Play(pg, tmp_path / str(len(broken)))
        with pytest.raises(InvalidInput):
            play.run(unit)
        report = play.judge(drained=False)
        assert report.broken - {"I15"} == broken, report.text()


@pytest.mark.parametrize("together", [True, False])
def test_an_effect_outside_the_commit_is_found(pg: PostgresEngine, tmp_path: Path, together: bool) -> None:
    """The handler of the first attempt dies after its effect; the second writes it again."""
    create_effects(pg)
    play = Play(pg, tmp_path / "history")
    old, new = play.worker(lease_s=0.0), play.worker()
    job = play.submit()
    play.claim(old)
    if not together:
        write_effect(play, job, 1)
    play.bury(old)
    play.suspect(new)
    with play.engine.session() as session:
        session.connection.execute(EFFECT, (job, 2))
        session.run(store.succeed([store.Success(job, 2, "1")], holder=new))
    report = play.judge(effects={"send"})
    assert report.looked["I5"] == 1
    assert report.broken == (set() if together else {"I5"}), report.text()


def test_a_missing_effect_is_found(pg: PostgresEngine, tmp_path: Path) -> None:
    create_effects(pg)
    play = Play(pg, tmp_path / "history")
    success(play)
    report = play.judge(effects={"send"})
    assert report.broken == {"I5"}, report.text()


EFFECT = "INSERT INTO fencerow.effect (job, attempt) VALUES (%s, %s)"


def write_effect(play: Play, job: str, attempt: int) -> None:
    with play.engine.session() as session:
        session.connection.execute(EFFECT, (job, attempt))


@pytest.mark.parametrize("name", SEEDS)
def test_a_guard_taken_out_is_found(pg: PostgresEngine, name: str, tmp_path: Path) -> None:
    seed = SEEDS[name]
    sound = Play(pg, tmp_path / "sound")
    seed.script(sound)
    report = sound.judge(**seed.options)
    assert report.is_clean, report.text()

    with pg.session() as session:
        session.connection.execute(
            "TRUNCATE fencerow.jobs, fencerow.finished_jobs, fencerow.keys, fencerow.job_events,"
            " fencerow.workers, fencerow.job_progress"
        )
    with altered(pg, seed.cuts) as engine:
        seeded = Play(engine, tmp_path / "seeded")
        seed.script(seeded)
        report = seeded.judge(**seed.options)
    assert seed.broken <= report.broken, report.text()
    for each in report.violations:
        assert not each.acts or report.proofs(each), "a violation names the lines that prove it"
