"""Histories that never happened: what the checker must find in them, and what it must let pass beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.errors import InvalidInput
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.checks.lost import check_all_or_nothing
from fencerow_proof.history.final import Final, FinalRow
from fencerow_proof.history.reading import read_history
from fencerow_proof.history.report import Report
from tests.proof.history.scribe import Scribe

J = "j1"


def judge(scribe: Scribe, **options: object) -> Report:
    return check([scribe.path.parent], None, Options(slack_s=0.1, **options))  # type: ignore[arg-type]


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    return Scribe(tmp_path)


def dead(scribe: Scribe, holder: str = "h1", at: int = 40) -> None:
    scribe.act("register", 1, 2, holder=holder)
    scribe.act("die", at, at + 1, holder=holder)


# --- twins: the same acts, once as they may be and once as they must not be -----------------------------------------


def stale_write(scribe: Scribe, bad: bool) -> None:
    """The success of attempt 1 is answered while it is reclaimed and claimed anew, or is sent only after that."""
    dead(scribe)
    scribe.act("submit", 10, 15, job=J, new=True)
    scribe.claim(J, 1, 20, 25, "h1")
    if bad:
        scribe.reclaim(J, 1, 50, 55, "h1")
        scribe.claim(J, 2, 60, 65, "h2")
        scribe.end("requeue", J, 2, 90, 95, "h2")
        scribe.end("succeed", J, 1, 70, 75, "h1")
    else:
        scribe.end("succeed", J, 1, 45, 75, "h1")


def two_holders(scribe: Scribe, bad: bool) -> None:
    scribe.life(J)
    if bad:
        scribe.claim(J, 1, 22, 26, "h2")


def foreign_write(scribe: Scribe, bad: bool) -> None:
    scribe.act("submit", 10, 15, job=J, new=True)
    scribe.claim(J, 1, 20, 25, "h1")
    scribe.end("succeed", J, 1, 40, 45, "h2" if bad else "h1")


def late_note(scribe: Scribe, bad: bool) -> None:
    """Progress is written while the success is under way, or after it was answered."""
    scribe.life(J)  # the success lies between 40 and 45
    start = 50 if bad else 42
    scribe.act("progress", start, start + 10, job=J, attempt=1, holder="h1")


def overlap(scribe: Scribe, bad: bool) -> None:
    """Attempt 2 is claimed after attempt 1 was given back, or before that was even sent."""
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.end("requeue", J, 1, 40 if bad else 20, 45 if bad else 35, "h1")
    scribe.claim(J, 2, 30, 37, "h2")
    scribe.end("succeed", J, 2, 50, 55, "h2")


def early_death(scribe: Scribe, bad: bool) -> None:
    scribe.lease("h1", 0, 300, 100, lease_s=0.5)
    scribe.act("die", 600 if bad else 750, 610 if bad else 760, holder="h1")


def unclaimed(scribe: Scribe, bad: bool) -> None:
    """An attempt that an unanswered claim explains, or nothing."""
    scribe.act("submit", 1, 2, job=J, new=True)
    if not bad:
        scribe.act("claim", 5, None, holder="h1", limit=5)
    scribe.act("requeue", 20, 25, job=J, attempt=1, holder="h1", how="released", state="queued")
    scribe.claim(J, 2, 30, 35, "h2")
    scribe.end("succeed", J, 2, 50, 55, "h2")


def ended_twice(scribe: Scribe, bad: bool) -> None:
    scribe.life(J)
    if bad:
        scribe.end("fail", J, 1, 40, 46, "h1")


def cancelled(scribe: Scribe, bad: bool) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.act("cancel_idle", 10, 20, job=J, state="cancelled")
    if bad:
        scribe.claim(J, 1, 25, 30, "h1")
        scribe.end("requeue", J, 1, 40, 45, "h1")
    scribe.act("revive" if not bad else "delete", 60, 65, job=J)
    if not bad:
        scribe.claim(J, 1, 70, 75, "h1")
        scribe.end("succeed", J, 1, 80, 85, "h1")


def both_won(scribe: Scribe, bad: bool) -> None:
    """A cancel and a claim cross: one of them is refused, or both are said to have won."""
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.act("cancel_idle", 10, 20, job=J, state="cancelled")
    if bad:
        scribe.claim(J, 1, 11, 21, "h1")
    else:
        scribe.act("claim", 11, 21, holder="h1", limit=1)


def keys(scribe: Scribe, bad: bool) -> None:
    for number, job in enumerate(("j1", "j2")):
        at = 10 + number * 100
        scribe.act("reserve_keys", at, at + 5, job=job, scope="s", key="k", fingerprint="f", new=True)
        scribe.life(job, at + 10)
        if number == 0 and not bad:
            scribe.act("purge_keys", 80, 85, scope="s", key="k")


def recovery(scribe: Scribe, bad: bool) -> None:
    """h1 falls silent at 100 ms with a lease of half a second; h2 renews all the time and could look."""
    scribe.lease("h1", 0, 100, 50, lease_s=0.5)
    scribe.lease("h2", 0, 6000, 100, lease_s=0.5)
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.act("die", 700, 705, holder="h1")
    at = 5000 if bad else 1000
    scribe.reclaim(J, 1, at, at + 5, "h1")
    scribe.claim(J, 2, at + 10, at + 15, "h2")
    scribe.end("succeed", J, 2, at + 20, at + 25, "h2")


def nobody_looks(scribe: Scribe, bad: bool) -> None:
    """The same lateness, but an outage stopped everybody's renewals: the bound does not run."""
    scribe.lease("h1", 0, 100, 50, lease_s=0.5)
    if bad:
        scribe.lease("h2", 0, 6000, 100, lease_s=0.5)
    else:
        scribe.lease("h2", 0, 300, 100, lease_s=0.5)
        scribe.lease("h3", 4400, 6000, 100, lease_s=0.5)
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.act("die", 4950, 4955, holder="h1")
    scribe.reclaim(J, 1, 5000, 5005, "h1")
    scribe.claim(J, 2, 5010, 5015, "h3")
    scribe.end("succeed", J, 2, 5020, 5025, "h3")


def too_many(scribe: Scribe, bad: bool) -> None:
    jobs = [f"j{number}" for number in range(3 if bad else 2)]
    for job in jobs:
        scribe.act("submit", 1, 2, job=job, new=True)
    scribe.step("claim", 10, 15, [{"job": j, "attempt": 1, "holder": "h1", "limit": 2} for j in jobs])
    for job in jobs:
        scribe.end("succeed", job, 1, 20, 25, "h1")


def slots(scribe: Scribe, bad: bool) -> None:
    """A worker with two slots ran three handlers, at once or one after another."""
    scribe.act("register", 1, 2, holder="h1", lease_s=30.0, slots=2)
    for number in range(3):
        scribe.life(f"j{number}")
        start = 26 if bad else 26 + number * 4
        scribe.act("run", start, start + 3, job=f"j{number}", attempt=1, holder="h1")


def suspects(scribe: Scribe, bad: bool) -> None:
    dead(scribe, "h0", 30)
    for number in range(2):
        job, at = f"j{number}", 100 if bad else 100 + number * 50
        scribe.act("submit", 1, 2, job=job, new=True)
        scribe.claim(job, 1, 10, 15, "h0")
        scribe.reclaim(job, 1, 40, 45, "h0")
        scribe.act("claim", at, at + 5, job=job, attempt=2, holder="h1", limit=1, suspect=True)
        scribe.end("succeed", job, 2, at + 20, at + 25, "h1")


def lost(scribe: Scribe, bad: bool) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    if not bad:
        scribe.end("succeed", J, 1, 20, None, "h1")  # its answer was lost: it may have happened


def refused(scribe: Scribe, bad: bool) -> None:
    scribe.act("submit", 1, 2, "fail", job=J, code="FR-206")
    if bad:
        scribe.claim(J, 1, 10, 15, "h1")
        scribe.end("succeed", J, 1, 20, 25, "h1")


def outside(scribe: Scribe, bad: bool) -> None:
    scribe.life(J)
    for at in (26, 28) if bad else (26,):
        scribe.act("effect", at, at, job=J, attempt=1)


TWINS: dict[Callable[[Scribe, bool], None], set[str]] = {
    stale_write: {"I2", "I6"},
    two_holders: {"I2", "I6"},
    foreign_write: {"I2"},
    late_note: {"I2"},
    overlap: {"I2", "I3"},
    early_death: {"I3"},
    unclaimed: {"I6"},
    ended_twice: {"I6"},
    cancelled: {"I8"},
    both_won: {"I8"},
    keys: {"I7"},
    recovery: {"I9"},
    nobody_looks: {"I9"},
    too_many: {"I14"},
    slots: {"I14"},
    suspects: {"I14"},
    lost: {"I1"},
    refused: {"I17"},
    outside: {"I5"},
}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_fault_is_found_and_its_twin_passes(twin: Callable[[Scribe, bool], None], tmp_path: Path) -> None:
    for bad in (False, True):
        folder = tmp_path / str(bad)
        folder.mkdir()
        twin(scribe := Scribe(folder), bad)
        report = judge(scribe)
        assert report.broken == (TWINS[twin] if bad else set()), report.text()
        assert all(report.looked[name] for name in TWINS[twin]), "the good twin was not looked at"


# --- both readings of what is not known -----------------------------------------------------------------------------


def test_an_unanswered_success_may_have_happened_or_not(scribe: Scribe) -> None:
    """Not: the job goes on after a reclaim. And if it had, the next attempt could not be."""
    dead(scribe)
    scribe.act("submit", 10, 15, job=J, new=True)
    scribe.claim(J, 1, 20, 25, "h1")
    scribe.end("succeed", J, 1, 30, None, "h1")
    scribe.reclaim(J, 1, 50, 55, "h1")
    scribe.claim(J, 2, 60, 65, "h2")
    scribe.end("succeed", J, 2, 70, 75, "h2")
    assert judge(scribe).is_clean


def test_an_unanswered_submit_may_have_been_stored(scribe: Scribe) -> None:
    scribe.act("submit", 1, None, job=J)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.end("succeed", J, 1, 20, 25, "h1")
    scribe.act("submit", 30, 35, job=J, new=False)
    scribe.act("submit", 1, None, job="j2")
    report = judge(scribe)
    assert report.is_clean, report.text()


def test_an_unanswered_claim_explains_only_what_began_after_it(scribe: Scribe) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.act("requeue", 20, 25, job=J, attempt=1, holder="h1", state="queued")
    scribe.act("claim", 27, None, holder="h1", limit=5)
    scribe.claim(J, 2, 30, 35, "h2")
    scribe.end("succeed", J, 2, 50, 55, "h2")
    assert judge(scribe).broken == {"I6"}


def test_an_unanswered_reclaim_explains_the_next_claim(scribe: Scribe) -> None:
    dead(scribe)
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.act("reclaim", 50, None, holder="h1")
    scribe.claim(J, 2, 60, 65, "h2")
    scribe.end("succeed", J, 2, 70, 75, "h2")
    assert judge(scribe).is_clean
    scribe.life("j2", 200)
    scribe.claim("j2", 2, 300, 305, "h2")
    assert not judge(scribe).is_clean, "it explains nothing of a job that had ended"


@pytest.mark.parametrize("passed", [True, False])
def test_an_unanswered_claim_may_be_of_one_to_whom_an_unanswered_end_passed_its_turn(
    scribe: Scribe, passed: bool
) -> None:
    dead(scribe)
    scribe.act("submit", 1, 2, job=J, new=True, state="waiting", exclusive="k")
    scribe.act("hand_over", 5, None if passed else 6)
    scribe.act("claim", 10, None, holder="h1", limit=5)
    scribe.act("reclaim", 50, 55, job=J, attempt=1, holder="h1", state="queued")
    scribe.claim(J, 2, 60, 65, "h2")
    scribe.end("succeed", J, 2, 70, 75, "h2")
    report = judge(scribe)
    assert report.is_clean == passed, report.text()


@pytest.mark.parametrize(
    ("needs", "start", "end", "looked", "explained"),
    [
        ({"limits": ["api"]}, 5, None, {"limits": ["api", "b"]}, True),
        ({"limits": ["api"]}, 5, None, {"limits": ["b"]}, False),
        ({"limits": ["api"]}, 5, None, {}, False),  # an end, which passes on the turn of a key alone
        ({"limits": ["api"]}, 5, 6, {"limits": ["api"]}, False),  # it was answered: to nobody
        ({"limits": ["api"]}, 30, None, {"limits": ["api"]}, False),  # it began later
        ({"exclusive": "k"}, 5, None, {}, True),  # of an end of which no more is known
        ({"exclusive": "k"}, 5, None, {"of": {"exclusive": "k"}}, True),
        ({"exclusive": "k"}, 5, None, {"of": {"exclusive": "k", "limits": ["b"]}}, True),
        ({"exclusive": "k"}, 5, None, {"of": {"exclusive": "j"}}, False),
        ({"exclusive": "k"}, 5, None, {"of": {}}, False),  # no key had a turn to pass on
        ({"exclusive": "k"}, 5, None, {"limits": ["api"]}, False),
        ({}, 5, None, {}, False),  # a job that waits for something else
    ],
)
def test_a_claim_of_one_who_waits_is_explained_by_an_unanswered_look_at_its_gate_alone(
    scribe: Scribe,
    needs: dict[str, Any],
    start: int,
    end: int | None,
    looked: dict[str, Any],
    explained: bool,
) -> None:
    scribe.act("submit", 1, 2, job=J, new=True, state="waiting", **needs)
    if "of" not in looked:
        scribe.act("hand_over", start, end, **looked)
    else:
        scribe.act("submit", 1, 2, job="ended", new=True, **looked["of"])
        scribe.claim("ended", 1, 3, 4, "h1")
        scribe.act("submit", 1, 2, job="plain", new=True)
        scribe.claim("plain", 1, 3, 4, "h1")
        ended = {"job": "ended", "attempt": 1, "holder": "h1"}
        scribe.step("succeed", start, end, [ended | {"job": "plain"}, ended, {"verb": "hand_over"}])
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.end("succeed", J, 1, 20, 25, "h1")
    report = judge(scribe, drained=False)
    assert report.broken == (set() if explained else {"I4"}), report.text()


@pytest.mark.parametrize("answered", [True, False])
def test_only_an_unanswered_submit_may_have_had_its_turn_or_waited_for_it(
    scribe: Scribe, answered: bool
) -> None:
    for number, handed in enumerate((False, True)):
        told: dict[str, Any] = {"state": "waiting", "new": True} if answered else {}
        scribe.act("submit", 1, 2 if answered else None, job=f"j{number}", exclusive="k", **told)
        if handed:
            scribe.act("hand_over", 5, 6, job=f"j{number}", state="queued")
        scribe.claim(f"j{number}", 1, 10, 15, "h1")
        scribe.end("succeed", f"j{number}", 1, 20, 25, "h1")
    report = judge(scribe)
    assert report.broken == ({"I4"} if answered else set()), report.text()


def test_a_submit_of_several_is_stored_as_a_whole_unless_one_was_submitted_again(scribe: Scribe) -> None:
    row = FinalRow("send", State.QUEUED, 0, None, 0, 0, None, None, None, None)
    final = Final({"j2": [row]}, {}, Counter(), [])

    def found() -> list[str]:
        history = read_history([scribe.path.parent])
        report = Report(history)
        check_all_or_nothing(report, history, final)
        return [each.invariant for each in report.violations]

    scribe.step("submit", 1, None, [{"job": J}, {"job": "j2"}])
    assert found() == ["I1"]
    scribe.step("submit", 9, None, [{"job": "j2"}])  # without the other, as on a full disk
    assert found() == []


def test_a_job_of_many_attempts_has_an_order(scribe: Scribe) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    for number in range(1, 201):
        scribe.claim(J, number, number * 10, number * 10 + 2, "h1")
        scribe.end("requeue", J, number, number * 10 + 4, number * 10 + 6, "h1")
    report = judge(scribe, drained=False)
    assert report.is_clean and report.undecided == 0 and report.looked["I4"] == 1


def test_unanswered_sweeps_do_not_make_a_job_undecidable(scribe: Scribe) -> None:
    """Claims and sweeps whose answers were lost could go round for ever if each explained any attempt."""
    scribe.act("submit", 1, 2, job=J, new=True)
    for holder in ("h1", "h2", "h3"):
        scribe.act("claim", 3, None, holder=holder, limit=5)
    scribe.act("time_out", 4, None)
    scribe.act("expire", 4, None)
    scribe.end("requeue", J, 1, 20, 25, "h1")
    for number in range(2, 40):
        scribe.claim(J, number, number * 30, number * 30 + 5, "h2")
        scribe.end("requeue", J, number, number * 30 + 10, number * 30 + 15, "h2")
    report = judge(scribe, drained=False)
    assert report.is_clean, report.text()
    assert report.undecided == 0


def test_a_retry_although_a_cancel_was_asked_has_no_legal_order(scribe: Scribe) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.claim(J, 1, 10, 15, "h1")
    scribe.act("ask_cancel", 20, 25, job=J, holder="h1")
    scribe.end("requeue", J, 1, 24, 26, "h1")
    scribe.claim(J, 2, 30, 35, "h1")
    scribe.end("succeed", J, 2, 40, 45, "h1")
    assert judge(scribe).broken == {"I4"}


# --- files as a kill leaves them ------------------------------------------------------------------------------------


def test_a_torn_last_line_leaves_its_step_undecided(scribe: Scribe) -> None:
    scribe.act("submit", 1, 2, job=J, new=True)
    scribe.end("succeed", J, 1, 20, 25, "h2")
    scribe.raw(
        '{"process":"p1","kind":"invoke","op":7,"step":1,"verb":"claim","mono_us":5000,"holder":"h2"}\n'
    )
    scribe.raw('{"process":"p1","kind":"ok","op":7,"step":1,"verb":"claim","mono_us":6000,"jo')
    history = read_history([scribe.path])
    assert [act.verb for act in history.others if act.maybe] == ["claim"]
    assert history.sources[0].torn
    assert judge(scribe).is_clean, "the claim may have been the missing one"


def test_an_empty_file_and_a_head_alone_are_histories(tmp_path: Path) -> None:
    Scribe(tmp_path)
    (tmp_path / "torn.history.jsonl").write_text('{"kind":"beg')
    assert judge(Scribe(tmp_path, "p2")).is_clean


@pytest.mark.parametrize("line", ["no json", '{"kind":"strange","process":"p","mono_us":1}'])
def test_what_is_no_history_is_refused(scribe: Scribe, line: str) -> None:
    scribe.raw(line + "\n")
    with pytest.raises(InvalidInput, match=r"p1.history.jsonl line 2"):
        judge(scribe)


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no history"):
        check([tmp_path / "none"])
    with pytest.raises(InvalidInput, match="no history was found"):
        check([tmp_path])


def test_clocks_of_two_machines_are_brought_together(tmp_path: Path) -> None:
    """On the second machine the monotonic clock began an hour earlier."""
    one = Scribe(tmp_path, "p1", "b1", wall_ms=10_000_000)
    other = Scribe(tmp_path, "p2", "b2", wall_ms=10_000_000 - 3_600_000)
    one.act("submit", 10, 15, job=J, new=True)
    other.claim(J, 1, 3_600_000 + 20, 3_600_000 + 25, "h1")
    other.end("succeed", J, 1, 3_603_000, 3_603_100, "h1")
    assert judge(one).is_clean
    other.claim(J, 2, 3_600_000 + 30, 3_600_000 + 31, "h2")
    assert judge(one).broken == {"I2", "I3"}, "three seconds are more than clocks may differ"


def test_a_report_names_the_lines(scribe: Scribe) -> None:
    two_holders(scribe, True)
    text = judge(scribe).text()
    assert "I2 (single authority): job j1: two holders have attempt 1" in text
    assert "p1.history.jsonl:5:" in text and '"holder": "h2"' in text
