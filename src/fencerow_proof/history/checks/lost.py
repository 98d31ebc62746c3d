"""I1 no lost job, I15 nothing appears or vanishes, I17 a refusal is clean: what was submitted against what there is."""

from __future__ import annotations

from collections import Counter

from fencerow.core.model.state import FINAL, State
from fencerow_proof.history.acts import Act, History
from fencerow_proof.history.final import Final
from fencerow_proof.history.line import UNEXPECTED, Kind
from fencerow_proof.history.lives import CLAIMS, REMOVALS, Life, Unseen
from fencerow_proof.history.report import Report

ENDED = ("succeed", "fail", "stop", "cancel_idle", "expire", "disown")


def check_lost(report: Report, life: Life, hidden: Unseen, final: Final | None, *, drained: bool) -> None:
    """One job: accepted means kept and ended; refused means that there is none."""
    submits = [act for act in life.acts if act.verb == "submit"]
    accepted = [act for act in submits if act.happened]
    if accepted:
        report.looked["I1"] += 1
        if final is None:
            if drained:
                _ended_in_history(report, life, hidden)
        else:
            _kept(report, life, hidden, final, drained=drained)
    elif submits and all(act.kind is Kind.FAIL for act in submits):
        _refused(report, life, final, submits)


def _kept(report: Report, life: Life, hidden: Unseen, final: Final, *, drained: bool) -> None:
    rows = final.rows.get(life.job, [])
    if len(rows) > 1:
        states = " and ".join(row.state for row in rows)
        report.add("I1", f"it stands in both tables, {states}", life.job, life.acts)
    elif not rows and not life.possible(*REMOVALS) and not (hidden.removal and _ends(report, life)):
        report.add("I1", "its submit was answered, and it is nowhere", life.job, life.acts)
    elif rows and drained and rows[0].state not in FINAL:
        what = f"it was left {rows[0].state} in attempt {rows[0].attempt}"
        report.add("I1", what, life.job, life.acts)


def _ended_in_history(report: Report, life: Life, hidden: Unseen) -> None:
    """Without a database: something ended it after its last revive."""
    if not _ends(report, life) and not (hidden.expiry or hidden.time_out or hidden.reclaims):
        report.add("I1", "nothing in the history ended it", life.job, life.acts)


def _ends(report: Report, life: Life) -> list[Act]:
    """What may have ended it and was not undone by a revive."""
    ends = life.possible(*ENDED, *REMOVALS)
    ends += [
        act
        for act in life.all("reclaim", "time_out", "crash")
        if act.state is not None and State(act.state) in FINAL
    ]
    revived = life.all("revive")
    return [end for end in ends if not any(report.history.before(end, again) for again in revived)]


def _refused(report: Report, life: Life, final: Final | None, submits: list[Act]) -> None:
    """No row was changed by what was refused."""
    report.looked["I17"] += 1
    claims = life.possible(*CLAIMS)
    if claims or (final is not None and life.job in final.rows):
        codes = ", ".join(sorted({act.code or "?" for act in submits}))
        report.add(
            "I17", f"its submit was refused ({codes}), and yet it is there", life.job, [*submits, *claims]
        )


def check_all_or_nothing(report: Report, history: History, final: Final) -> None:
    """An unanswered submit of several jobs stored all of them or none.

    Nothing is known of a job that was submitted again, by itself or with fewer others: on a full disk they are.
    """
    together: dict[tuple[int, int], list[Act]] = {}
    sure: set[str] = set()
    for job, acts in history.by_job.items():
        if len({act.op for act in acts if act.verb == "submit"}) > 1:
            sure.add(job)
        for act in acts:
            if act.verb == "submit" and act.maybe:
                together.setdefault(act.op, []).append(act)
            elif (act.verb == "submit" and act.happened) or act.verb in REMOVALS:
                sure.add(job)  # another submit decided it, or it may be gone again
    for acts in together.values():
        undecided = [act for act in acts if act.job not in sure]
        there = [act for act in undecided if act.job in final.rows]
        report.looked["I1"] += 1
        if there and len(there) != len(undecided):
            what = f"of {len(undecided)} jobs of one unanswered submit {len(there)} were stored"
            report.add("I1", what, None, undecided)


def check_conservation(
    report: Report, history: History, hidden: Unseen, final: Final, *, foreign: bool
) -> None:
    """Each row has a submit that may have made it, each submit its row, and the counters count the rows."""
    report.looked["I15"] += len(final.rows)
    kept = [job for job, acts in history.by_job.items() if _is_kept(acts)]
    missing = [job for job in kept if job not in final.rows]
    if missing and not hidden.removal:
        what = f"{len(kept)} jobs were accepted and not removed, {len(missing)} of them are missing"
        report.add("I15", what, missing[0], history.by_job[missing[0]])
    if not foreign:
        for job in final.rows:
            if not any(act.verb == "submit" and act.possible for act in history.by_job.get(job, [])):
                report.add("I15", "no submit in the history made it", job, history.by_job.get(job, []))
    rows = Counter(row.state for standing in final.rows.values() for row in standing if not row.spent)
    for state in State:
        if rows[state] != final.counted[state]:
            what = f"the counters say {final.counted[state]} {state}, the tables hold {rows[state]}"
            report.add("I15", what)


def _is_kept(acts: list[Act]) -> bool:
    return any(act.verb == "submit" and act.happened for act in acts) and not any(
        act.verb in REMOVALS and act.possible for act in acts
    )


def check_codes(report: Report, history: History) -> None:
    """What an operation raised is an error with a stable code, or trouble of the database: nothing else."""
    told: set[tuple[int, int]] = set()
    for acts in (*history.by_job.values(), history.others):
        for act in acts:
            if act.code is None or act.was_refused or act.op in told:
                continue
            told.add(act.op)
            report.looked["I17"] += 1
            if act.code.startswith(UNEXPECTED):
                kind = act.code.removeprefix(UNEXPECTED)
                report.add("I17", f"{act.verb} ended in {kind}, which has no stable code", act.job, [act])
