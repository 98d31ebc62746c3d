"""I8 a cancel stands: a job that was cancelled before anybody ran it is not claimed later and never succeeds."""

from __future__ import annotations

from fencerow.model.state import State
from fencerow.testing.history.acts import Act
from fencerow.testing.history.final import Final
from fencerow.testing.history.lives import CLAIMS, Life, Unseen
from fencerow.testing.history.report import Report


def check_cancel(report: Report, life: Life, hidden: Unseen, final: Final | None) -> None:
    """Every answered cancel of one job, unless somebody revived it."""
    cancels = life.all("cancel_idle")
    if not cancels or life.possible("revive"):
        return
    report.looked["I8"] += len(cancels)
    (cancel, *_) = cancels
    _nothing_later(report, life, cancel)
    _no_running_attempt(report, life, hidden, cancel)
    rows = final.rows.get(life.job, []) if final is not None else []
    for row in rows:
        if row.state is not State.CANCELLED:
            report.add("I8", f"it was cancelled, and its row is {row.state}", life.job, [cancel])


def _nothing_later(report: Report, life: Life, cancel: Act) -> None:
    for act in life.all(*CLAIMS, "succeed", "fail", "requeue"):
        if report.history.before(cancel, act):
            report.add("I8", f"{act.verb} after it was cancelled", life.job, [cancel, act])


def _no_running_attempt(report: Report, life: Life, hidden: Unseen, cancel: Act) -> None:
    """Exactly one of cancel and claim wins: what is running is asked, not cancelled."""
    if not life.numbers:
        return
    last = life.attempts[life.numbers[-1]]
    claimed = [act for act in last.claims if report.history.before(act, cancel)]
    ended = [act for act in (*last.endings, *last.maybe_ended) if not report.history.before(cancel, act)]
    if claimed and not ended and hidden.taking_of(last.holder, cancel.end_us) is None:
        what = f"it was cancelled while attempt {last.number} was running"
        report.add("I8", what, life.job, [*claimed, cancel])
