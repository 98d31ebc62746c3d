"""I8 a cancel stands: a job that was cancelled before anybody ran it is not claimed later and never succeeds."""

from __future__ import annotations

from fencerow.core.model.state import State
from fencerow_proof.history.acts import Act
from fencerow_proof.history.final import Final
from fencerow_proof.history.lives import CLAIMS, Life, Unseen
from fencerow_proof.history.report import Report


def check_cancel(report: Report, life: Life, hidden: Unseen, final: Final | None) -> None:
    """Every answered cancel of one job, until somebody revived it."""
    for cancel in life.all("cancel_idle"):
        report.looked["I8"] += 1
        revived = [act for act in life.possible("revive") if not report.history.before(act, cancel)]
        _nothing_later(report, life, cancel, revived)
        _no_running_attempt(report, life, hidden, cancel)
        rows = final.rows.get(life.job, []) if final is not None and not revived else []
        for row in rows:
            if row.state is not State.CANCELLED:
                report.add("I8", f"it was cancelled, and its row is {row.state}", life.job, [cancel])


def _nothing_later(report: Report, life: Life, cancel: Act, revived: list[Act]) -> None:
    for act in life.all(*CLAIMS, "succeed", "fail", "requeue", "suspend"):
        excused = any(revival.start_us <= act.end_us for revival in revived)
        if report.history.before(cancel, act) and not excused:
            report.add("I8", f"{act.verb} after it was cancelled", life.job, [cancel, act])


def _no_running_attempt(report: Report, life: Life, hidden: Unseen, cancel: Act) -> None:
    """Exactly one of cancel and claim wins: what is running is asked, not cancelled."""
    for number in reversed(life.numbers):
        attempt = life.attempts[number]
        claimed = [act for act in attempt.claims if report.history.before(act, cancel)]
        if not claimed:
            continue
        ended = [
            act for act in (*attempt.endings, *attempt.maybe_ended) if not report.history.before(cancel, act)
        ]
        if not ended and hidden.taking_of(attempt.holder, cancel.end_us) is None:
            what = f"it was cancelled while attempt {number} was running"
            report.add("I8", what, life.job, [*claimed, cancel])
        return
