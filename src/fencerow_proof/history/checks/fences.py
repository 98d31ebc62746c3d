"""I2 single authority and I6 attempts are counted once: who wrote under which number, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow_proof.history.acts import NEVER, Act
from fencerow_proof.history.final import Final
from fencerow_proof.history.lives import Attempt, Life, Unseen, first_end
from fencerow_proof.history.report import Report


def check_fences(report: Report, life: Life, hidden: Unseen, final: Final | None) -> None:
    """Every rule about one job's attempts; each attempt and each fenced write counts as looked at."""
    for attempt in life.attempts.values():
        report.looked["I2"] += 1 + sum(1 for _ in attempt.writes)
        report.looked["I6"] += 1
        _one_claim(report, life, attempt)
        _one_ending(report, life, attempt)
        _same_holder(report, life, attempt)
        _no_late_notes(report, life, attempt)
    _never_back(report, life)
    _all_claimed(report, life, hidden, final)


def _one_claim(report: Report, life: Life, attempt: Attempt) -> None:
    if attempt.number < 1:
        report.add("I6", f"attempt {attempt.number} was handed out", life.job, attempt.claims)
    if len(attempt.claims) > 1:
        report.add("I6", f"attempt {attempt.number} was claimed twice", life.job, attempt.claims)
        if len({act.holder for act in attempt.claims}) > 1:
            report.add("I2", f"two holders have attempt {attempt.number}", life.job, attempt.claims)


def _one_ending(report: Report, life: Life, attempt: Attempt) -> None:
    if len(attempt.endings) > 1:
        report.add("I6", f"attempt {attempt.number} ended twice", life.job, attempt.endings)


def _same_holder(report: Report, life: Life, attempt: Attempt) -> None:
    """A write under this number by somebody who does not hold it."""
    holders = {act.holder for act in attempt.claims}
    if not holders:
        return
    for act in attempt.writes:
        if act.holder is not None and act.holder not in holders:
            what = f"{act.verb} of {act.holder} succeeded under attempt {attempt.number} of another holder"
            report.add("I2", what, life.job, [*attempt.claims, act])


def _no_late_notes(report: Report, life: Life, attempt: Attempt) -> None:
    for note in attempt.notes:
        ended = [act for act in attempt.endings if report.history.before(act, note)]
        if ended:
            what = f"{note.verb} succeeded after attempt {attempt.number} had ended"
            report.add("I2", what, life.job, [*ended, note])


def _never_back(report: Report, life: Life) -> None:
    """Nothing may be written under a number once a higher one was claimed, and no lower one claimed after it."""
    history, newer = report.history, None
    for number in reversed(life.numbers):
        attempt = life.attempts[number]
        if newer is not None:
            for act in (*attempt.claims, *attempt.writes):
                if history.before(newer, act):
                    what = f"{act.verb} succeeded under attempt {number} after attempt {newer.attempt} was claimed"
                    report.add("I2", what, life.job, [newer, act])
        newer = _earliest(newer, attempt.claims)


def _earliest(newer: Act | None, claims: list[Act]) -> Act | None:
    """Of the claims of higher numbers the one that was over first."""
    return min((*([newer] if newer else []), *claims), key=lambda act: act.end_us, default=None)


def _all_claimed(report: Report, life: Life, hidden: Unseen, final: Final | None) -> None:
    """Each number up to the highest has its claim, or one whose answer was lost can have made it."""
    if not life.acts:
        return
    rows = final.rows.get(life.job, []) if final is not None else []
    highest = max((*life.numbers, *(row.attempt for row in rows)), default=0)
    for number in range(1, highest + 1):
        attempt = life.attempts.get(number)
        if attempt is not None and attempt.claims:
            continue
        holder = attempt.holder if attempt is not None else None
        if hidden.claim_of(holder, _claimed_until(life, number)) is None:
            acts = list(attempt.writes) if attempt is not None else list(_around(life, number))
            report.add("I6", f"attempt {number} was never claimed", life.job, acts)
    for row in rows:
        if life.numbers and row.attempt < life.numbers[-1]:
            claims = life.attempts[life.numbers[-1]].claims
            if claims:
                what = f"the row says attempt {row.attempt}, but {life.numbers[-1]} was claimed"
                report.add("I6", what, life.job, claims)


def _claimed_until(life: Life, number: int) -> int:
    """The latest instant at which a claim of this number can have begun."""
    later = [
        first_end([*life.attempts[each].claims, *life.attempts[each].writes])
        for each in life.numbers
        if each >= number
    ]
    return min(later, default=NEVER)


def _around(life: Life, number: int) -> Iterator[Act]:
    for each in (number - 1, number + 1):
        if each in life.attempts:
            yield from life.attempts[each].claims
