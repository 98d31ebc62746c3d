"""I18: what a history says of exclusive keys and limits. One that ran beside too many is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.turns import handing
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.line import Kind
from fencerow_proof.history.report import Report
from tests.kit.jobs import AnyEngine, new_job
from tests.kit.taking import Slots
from tests.proof.history.play import Play, altered
from tests.proof.history.scribe import Scribe


def ran(
    scribe: Scribe,
    job: str,
    start: int,
    end: int | None,
    *,
    attempt: int = 1,
    holder: str = "h1",
    **facts: Any,
) -> None:
    """One run of a handler; with facts it was submitted before."""
    if facts:
        scribe.act("submit", start - 10, start - 9, job=job, new=True, **facts)
    scribe.claim(job, attempt, start - 4, start - 3, holder)
    scribe.act("run", start, end, job=job, attempt=attempt, holder=holder)
    if end is not None:
        scribe.end("succeed", job, attempt, end + 1, end + 2, holder)


def judged(folder: Path, **limits: int) -> Report:
    return check(
        [folder], options=Options(limits={f"queue:{name}": at_once for name, at_once in limits.items()})
    )


@pytest.mark.parametrize("at_once", [None, 2])
def test_one_more_than_the_key_allows_is_found(tmp_path: Path, at_once: int | None) -> None:
    scribe, allowed = Scribe(tmp_path), at_once or 1
    for number in range(allowed + 1):
        ran(scribe, f"j{number}", 100 + number, 200, exclusive="k", exclusive_at_once=at_once)
    ran(scribe, "other", 100, 200, exclusive="other")

    report = judged(tmp_path)

    assert report.looked["I18"] == allowed + 2
    (found,) = (each for each in report.violations if each.invariant == "I18")
    assert found.what == f"{allowed + 1} ran at once under the key k"
    assert len(report.proofs(found)) == 2 * len(found.acts)


def test_as_many_as_the_key_allows_are_right(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number in range(3):
        ran(scribe, f"one {number}", 100 + 20 * number, 115 + 20 * number, exclusive="k")
        ran(scribe, f"two {number}", 100 + 5 * number, 115 + 5 * number, exclusive="l", exclusive_at_once=3)

    report = judged(tmp_path)

    assert report.broken == set(), report.text()
    assert report.looked["I18"] == 6


def test_the_least_of_those_that_run_says_how_many_may(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    ran(scribe, "wide", 100, 200, exclusive="k", exclusive_at_once=5)
    ran(scribe, "narrow", 150, 250, exclusive="k")
    assert judged(tmp_path).broken == {"I18"}


def test_a_limit_of_a_queue_is_judged_where_it_is_told(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number in range(2):
        ran(scribe, f"j{number}", 100, 200, queue="mail")
    assert judged(tmp_path).looked["I18"] == 0
    assert judged(tmp_path, mail=2).broken == set()
    assert judged(tmp_path, mail=1).broken == {"I18"}


@pytest.mark.parametrize("taken", [True, False])
def test_who_was_robbed_may_run_on_beside_the_next(tmp_path: Path, taken: bool) -> None:
    """A worker is stopped beyond its lease, and goes on: its job was another's by then."""
    scribe = Scribe(tmp_path)
    ran(scribe, "robbed", 100, None, exclusive="k")
    if taken:
        scribe.reclaim("robbed", 1, 140, 141, "h1")
        ran(scribe, "robbed", 145, 150, attempt=2, holder="h2")
    ran(scribe, "next", 160, 200, holder="h2", exclusive="k")
    scribe.act("run", 210, 211, job="robbed", attempt=1, holder="h1")  # its process lives
    assert ("I18" in judged(tmp_path).broken) == (not taken)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("waits", [True, False])
def test_a_strict_job_keeps_its_turn_between_its_attempts(tmp_path: Path, strict: bool, waits: bool) -> None:
    scribe = Scribe(tmp_path)
    scribe.act("submit", 90, 91, job="a", new=True, exclusive="k", strict=strict, state="waiting")
    scribe.act("hand_over", 92, 93, job="a", state="queued")
    scribe.claim("a", 1, 94, 95, "h1")
    scribe.act("run", 100, 110, job="a", attempt=1, holder="h1")
    state = "waiting" if waits else "queued"
    scribe.act("requeue", 111, 112, job="a", attempt=1, holder="h1", how="retried", state=state)
    ran(scribe, "b", 130, 140, exclusive="k")
    if waits:
        scribe.act("hand_over", 150, 151, job="a", state="queued")
    ran(scribe, "a", 160, 170, attempt=2)

    report = judged(tmp_path)

    assert report.broken == ({"I18"} if strict and not waits else set()), report.text()


def between_attempts(scribe: Scribe, **facts: Any) -> None:
    """A strict job fails once, and nobody ends it; meanwhile another job runs that needs the same."""
    turned = {"new": True, "strict": True, "state": "waiting", **facts}
    scribe.act("submit", 90, 91, job="a", **turned)
    scribe.act("hand_over", 92, 93, job="a", state="queued")
    scribe.claim("a", 1, 94, 95, "h1")
    scribe.act("run", 100, 110, job="a", attempt=1, holder="h1")
    scribe.act("requeue", 111, 112, job="a", attempt=1, holder="h1", how="retried", state="queued")
    ran(scribe, "b", 130, 140, **facts)


@pytest.mark.parametrize("verb", ["take_turns_back", "cancel_idle", "change", ""])
def test_who_may_have_lost_its_turn_says_nothing(tmp_path: Path, verb: str) -> None:
    """The answer was lost: whether it was done shows only in what comes next."""
    scribe = Scribe(tmp_path)
    between_attempts(scribe, exclusive="k")
    if verb:
        scribe.act(verb, 120, None, job="a")
    ran(scribe, "a", 160, 170, attempt=2)

    assert ("I18" in judged(tmp_path).broken) == (not verb)


@pytest.mark.parametrize("revived", [True, False])
def test_a_strict_job_that_never_ran_has_had_no_turn(tmp_path: Path, revived: bool) -> None:
    """It was cancelled between its hand-over and its start: who came behind it was free to go."""
    scribe = Scribe(tmp_path)
    scribe.act("submit", 90, 91, job="a", new=True, strict=True, state="waiting", exclusive="k")
    scribe.act("hand_over", 92, 93, job="a", state="queued")
    scribe.act("cancel_idle", 95, 96, job="a", state="cancelled")
    ran(scribe, "b", 130, 140, exclusive="k")
    if revived:
        scribe.act("revive", 141, 142, job="a", state="waiting")
        scribe.act("hand_over", 144, 145, job="a", state="queued")
        ran(scribe, "a", 160, 170)

    report = judged(tmp_path)

    assert report.broken == set(), report.text()
    assert report.looked["I18"] == 1 + revived


@pytest.mark.parametrize("named", [True, False])
def test_between_its_attempts_a_strict_job_keeps_turns_and_no_room_of_its_queue(
    tmp_path: Path, named: bool
) -> None:
    scribe = Scribe(tmp_path)
    between_attempts(scribe, queue="mail", limits=["api"])
    ran(scribe, "a", 160, 170, attempt=2)
    limit = "api" if named else "queue:mail"

    report = check([tmp_path], options=Options(limits={limit: 1}))

    assert report.broken == ({"I18"} if named else set()), report.text()


@pytest.mark.parametrize("counted", [True, False])
def test_a_hand_over_that_does_not_count_is_found(engine: AnyEngine, tmp_path: Path, counted: bool) -> None:
    cut = ("count_turns", "('queued', 'running')", "('failed')")
    with altered(engine, [] if counted else [cut]) as used:
        play = Play(used, tmp_path)
        play.run(store.submit_gated([new_job(exclusive="k") for _ in range(3)]))
        holder = play.worker()
        for _ in range(3):
            play.run(handing.hand_over(["key:k"]))
            play.run(handing.hand_over(["key:k"]))
            run_together(play, play.claim(holder, limit=3), holder)
        report = play.judge()

    assert report.looked["I18"] == 3
    assert report.broken == (set() if counted else {"I18"}), report.text()


@pytest.mark.parametrize("said", [True, False])
def test_a_claim_is_of_one_whom_an_end_has_queued(engine: AnyEngine, tmp_path: Path, said: bool) -> None:
    with altered(engine, []) as used:
        play = Play(used, tmp_path)
        play.run(store.submit_gated([new_job(exclusive="k") for _ in range(2)]))
        play.run(handing.hand_over(["key:k"]))
        holder = play.worker()
        for _ in range(2):
            (job,) = play.claim(holder)
            ended = store.succeed_alone([store.Success(job.id, job.attempt, "1")], holder=holder)
            (play.run if said else used.run)(ended)
            play.run(handing.hand_over(["key:k"]))  # on SQLite no end passes its turn on
        report = play.judge()

    assert ("I4" in report.broken) == (engine.traits.has_server and not said), report.text()


def test_who_is_claimed_by_the_look_that_gives_its_turn_is_handed_over_and_claimed_once(
    engine: AnyEngine, tmp_path: Path
) -> None:
    with altered(engine, []) as used:
        play = Play(used, tmp_path)
        play.run(define(Limit("a", at_once=1), actor=None, reason=None))
        play.run(store.submit_gated([new_job(limits=("a",)) for _ in range(2)]))
        holder = play.worker()
        for _ in range(2):
            (job,) = play.run(handing.taking_over(Slots(holder, 1), ["limit:a"])).claimed
            play.succeed(job.id, job.attempt, holder)
        report = play.judge()

    assert report.broken == set(), report.text()


@pytest.mark.parametrize("way", ["by document", "by copy", "in one"])
def test_who_has_its_turn_from_its_submit_needs_no_hand_over_and_who_has_not_does(
    engine: AnyEngine, tmp_path: Path, way: str
) -> None:
    with altered(engine, []) as used:
        play = Play(used, tmp_path)
        jobs = [new_job(exclusive="k") for _ in range(2)]
        if used.dialect == "sqlite" or way == "by document":
            play.run(store.submit_gated(jobs, told=len))
        elif way == "by copy":
            play.run(store.submit_by_copy(jobs, told=len))
        else:
            for job in jobs:
                play.run(store.submit_with_turn(job, told=len))
        holder = play.worker()
        (first,) = play.claim(holder, limit=2)
        play.succeed(first.id, 1, holder)
        used.run(handing.hand_over())  # nobody notes this one
        (second,) = play.claim(holder)
        play.succeed(second.id, 1, holder)
        report = play.judge()

    assert [(each.invariant, each.job) for each in report.violations] == [("I4", second.id)], report.text()


def test_a_run_may_be_judged_while_jobs_wait_for_their_turns(engine: AnyEngine, tmp_path: Path) -> None:
    with altered(engine, []) as used:
        play = Play(used, tmp_path)
        play.run(store.submit_gated([new_job(exclusive="k") for _ in range(2)]))
        play.run(handing.hand_over(["key:k"]))
        report = play.judge(drained=False)

    assert report.broken == set(), report.text()


def run_together(play: Play, jobs: Sequence[Claimed], holder: str) -> None:
    """All begin before one ends."""
    recorder = play.engine.recorder
    runs = [(recorder.begin(), {"job": job.id, "attempt": job.attempt, "holder": holder}) for job in jobs]
    for kind in (Kind.INVOKE, Kind.OK):
        recorder.write([recorder.line(kind, op, 1, "run", **fence) for op, fence in runs])
    for job in jobs:
        play.succeed(job.id, job.attempt, holder)
