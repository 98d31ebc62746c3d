"""I7 one answer per key: the same payload got the same job while the key lived, all others were refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow_proof.history.acts import Act, History
from fencerow_proof.history.final import Final
from fencerow_proof.history.report import Report

DROPS = ("drop_expired_keys", "give_keys_back", "purge_keys")


@dataclass(slots=True)
class KeyLife:
    """All that was said of one key. `owners` are the answers: which job it belongs to."""

    asked: list[Act] = field(default_factory=list[Act])
    owners: list[Act] = field(default_factory=list[Act])
    dropped: list[Act] = field(default_factory=list[Act])


def check_keys(report: Report, history: History, final: Final | None) -> None:
    """Every key of the run."""
    found, maybe_dropped = _collect(history)
    for (scope, key), life in found.items():
        report.looked["I7"] += 1
        name = f"key {key!r} in scope {scope!r}"
        _same_payload(report, life, name)
        if not life.dropped and not maybe_dropped:
            _one_owner(report, life, name)
    if final is not None and not maybe_dropped:
        _one_row(report, final, found)


def _collect(history: History) -> tuple[dict[tuple[str, str], KeyLife], bool]:
    found: dict[tuple[str, str], KeyLife] = {}
    maybe_dropped = False
    for acts in (*history.by_job.values(), history.others):
        for act in acts:
            if act.verb in DROPS and act.maybe:
                maybe_dropped = True
            if act.scope is None or act.key is None:
                continue
            life = found.setdefault((act.scope, act.key), KeyLife())
            if act.verb in DROPS:
                life.dropped.append(act)
            elif act.verb == "reserve_keys" and (act.happened or act.was_refused):
                life.asked.append(act)
                if act.happened:
                    life.owners.append(act)
            elif act.verb == "read_keys" and act.happened:
                life.owners.append(act)
    return found, maybe_dropped


def _one_owner(report: Report, life: KeyLife, name: str) -> None:
    """Without an end of the key's life there is one job behind it."""
    jobs = sorted({act.job for act in life.owners if act.job is not None})
    if len(jobs) > 1:
        report.add(
            "I7", f"{name} was answered with {len(jobs)} jobs: {', '.join(jobs)}", jobs[0], life.owners
        )


def _same_payload(report: Report, life: KeyLife, name: str) -> None:
    """A submit that was answered met its own fingerprint. (A refused one was rolled back: it is not among these.)"""
    answered = {act.op: act for act in life.owners if act.verb == "read_keys"}
    for asked in life.asked:
        answer = answered.get(asked.op)
        if answer is not None and asked.fingerprint is not None and asked.fingerprint != answer.fingerprint:
            what = f"{name} answered another payload with job {answer.job}"
            report.add("I7", what, answer.job, [asked, answer])


def _one_row(report: Report, final: Final, found: dict[tuple[str, str], KeyLife]) -> None:
    """At most one job in the tables carries a key that never ended."""
    jobs: dict[tuple[str, str], list[str]] = {}
    for job, rows in final.rows.items():
        for row in rows[:1]:
            if row.scope is not None and row.key is not None:
                jobs.setdefault((row.scope, row.key), []).append(job)
    for (scope, key), owners in jobs.items():
        life = found.get((scope, key))
        if len(owners) > 1 and life is not None and not life.dropped:
            what = f"key {key!r} in scope {scope!r} has {len(owners)} jobs: {', '.join(sorted(owners))}"
            report.add("I7", what, owners[0], life.owners)
