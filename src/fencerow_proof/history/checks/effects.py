"""I5: what handlers did, counted: once per success in job.transaction(), at least once in an outside sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from fencerow.core.model.state import State
from fencerow_proof.history.acts import Act
from fencerow_proof.history.final import Final
from fencerow_proof.history.lives import CLAIMS, ENDINGS, Life
from fencerow_proof.history.report import Report


def check_effects(report: Report, life: Life, final: Final | None, names: Collection[str]) -> None:
    """The effects of one job: rows of the table if its job is one of `names`, lines outside if there are any."""
    if final is not None and final.effects is not None and _name(life, final) in names:
        _in_the_database(report, life, final, final.effects.get(life.job, []))
    outside = life.all("effect")
    if outside:
        _outside(report, life, outside)


def _name(life: Life, final: Final) -> str | None:
    rows = final.rows.get(life.job)
    named = rows[0].name if rows else ""
    return named or next((act.name for act in life.acts if act.name is not None), None)


def _in_the_database(report: Report, life: Life, final: Final, attempts: list[int]) -> None:
    report.looked["I5"] += 1
    least, most = _successes(life, final)
    acts = [act for act in life.acts if act.verb in CLAIMS or act.verb in ENDINGS]
    if not least <= len(attempts) <= most:
        often = f"{least}" if least == most else f"{least} to {most}"
        what = f"it has {len(attempts)} effects (attempts {sorted(attempts)}) and succeeded {often} times"
        report.add("I5", what, life.job, acts)
    for number in attempts:
        attempt = life.attempts.get(number)
        if attempt is not None and attempt.endings and all(act.verb != "succeed" for act in attempt.endings):
            what = f"attempt {number} has an effect and ended by {attempt.endings[0].verb}"
            report.add("I5", what, life.job, acts)


def _successes(life: Life, final: Final) -> tuple[int, int]:
    """How often the job succeeded: at least, and at most (a revived job may succeed again)."""
    sure, maybe = len(life.all("succeed")), len(life.maybe("succeed"))
    rows = final.rows.get(life.job, [])
    if any(row.state is State.SUCCEEDED for row in rows):
        return max(sure, 1), max(sure + maybe, 1)
    return sure, sure + maybe


def _outside(report: Report, life: Life, outside: list[Act]) -> None:
    """An outside effect may repeat with the attempts, one line each; not more often."""
    report.looked["I5"] += 1
    claims = [act for attempt in life.attempts.values() for act in attempt.claims]
    for number, count in Counter(act.attempt for act in outside).items():
        if count > 1:
            what = f"attempt {number} left {count} lines in the outside sink"
            report.add("I5", what, life.job, [*claims, *outside])
