"""I19: what a history says of affinity. A worker without the label that took a job too early is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.turns import affinity
from fencerow_proof.history.check import check
from fencerow_proof.history.report import Report
from tests.kit.jobs import AnyEngine, new_job
from tests.proof.history.play import Play, altered
from tests.proof.history.scribe import Scribe


def taken(scribe: Scribe, verb: str, attempt: int, start: int, **facts: Any) -> None:
    """A claim, and the retry after it."""
    scribe.act(verb, start, start + 1, job="a", attempt=attempt, holder="h1", state="running", **facts)
    scribe.end("requeue", "a", attempt, start + 5, start + 6, "h1")


def submitted(folder: Path) -> Scribe:
    scribe = Scribe(folder)
    scribe.act("submit", 10, 11, job="a", new=True, affinity="gpu", state="queued")
    return scribe


def broken(folder: Path) -> Report:
    report = check([folder])
    report.violations = [each for each in report.violations if each.invariant == "I19"]
    return report


def test_a_worker_with_the_label_is_right(tmp_path: Path) -> None:
    taken(submitted(tmp_path), "claim", 1, 20, labels=["big", "gpu"])
    report = broken(tmp_path)
    assert (report.looked["I19"], report.violations) == (1, [])


def test_one_without_it_is_found(tmp_path: Path) -> None:
    taken(submitted(tmp_path), "claim", 1, 20)
    (found,) = broken(tmp_path).violations
    assert found.what == "h1 does not carry the label gpu, and took it before its wait was over"


def test_one_with_another_label_is_found(tmp_path: Path) -> None:
    taken(submitted(tmp_path), "claim", 1, 20, labels=["big"])
    assert len(broken(tmp_path).violations) == 1


def test_a_fall_back_is_good_for_one_attempt(tmp_path: Path) -> None:
    scribe = submitted(tmp_path)
    scribe.act("fall_back", 15, 16, job="a", state="queued")
    taken(scribe, "claim", 1, 20)
    assert broken(tmp_path).violations == []
    taken(scribe, "claim", 2, 40)
    assert len(broken(tmp_path).violations) == 1


def test_a_fall_back_whose_answer_was_lost_may_have_been_one_of_it(tmp_path: Path) -> None:
    scribe = submitted(tmp_path)
    scribe.act("fall_back", 15, None)
    taken(scribe, "claim", 1, 20)
    assert broken(tmp_path).violations == []


@pytest.mark.parametrize("looks", [True, False])
def test_a_claim_by_label_that_looks_at_no_label_is_found(
    engine: AnyEngine, tmp_path: Path, looks: bool
) -> None:
    """What workers do is recorded: a claim by label, the wait that is over, and who takes it then."""
    guard = (
        'AND "fencerow".lane(queued) = lane.mark ->> 1'
        if engine.traits.has_server
        else "AND queued.lane = json_extract(lane.value, '$[1]')"
    )
    cuts = [("claim", guard, "")]
    with altered(engine, [] if looks else cuts) as used:
        play = Play(used, tmp_path)
        one, other = new_job(affinity="gpu"), new_job(affinity="big", affinity_wait_s=0.001, run_at_us=1)
        play.run(store.submit_gated([one, other]))
        holder = play.worker()
        marks = [store.Mark(0, lane="label:gpu"), store.Mark(0)]
        claiming = store.claim("mail", marks, holder=holder, names=["send"], limit=2, margin_s=9.0)
        claims = play.run(claiming)
        play.run(affinity.fall_back(actor="w"))
        claims += play.claim(holder)
        for job in claims:
            play.succeed(job.id, job.attempt, holder)
        report = play.judge()

    assert len(claims) == report.looked["I19"] == 2
    assert report.broken == (set() if looks else {"I19"}), report.text()
