"""I4, from the database: the timeline of each job walks along the published graph and ends where its row is."""

from __future__ import annotations

from fencerow.core.model.state import FINAL, State
from fencerow_proof.history.acts import Act
from fencerow_proof.history.final import Final, FinalRow, Noted
from fencerow_proof.history.report import Report
from fencerow_proof.moves import RULES, JobMove

# What each kind of note says of the job's way. Other kinds change no state.
MOVE_OF = {
    "retried": JobMove.RETRY,
    "snoozed": JobMove.RETRY,
    "released": JobMove.RELEASE,
    "suspended": JobMove.SUSPEND,
    "failed": JobMove.FAIL,
    "stopped": JobMove.STOP,
    "reclaimed": JobMove.RECLAIM,
    "crashed": JobMove.RECLAIM,  # the same way, told by the holder itself
    "timed_out": JobMove.TIMEOUT,
    "cancelled": JobMove.CANCEL,
    "expired": JobMove.EXPIRE,
    "disowned": JobMove.DISOWN,
    "revived": JobMove.REVIVE,
}


def check_moves(report: Report, final: Final) -> None:
    """Every job's timeline and row. Which rows of the tables contradict each other is told by their invariants."""
    for job, rows in final.rows.items():
        report.looked["I4"] += 1
        if len(rows) == 1:
            _walk(report, job, final.noted.get(job, []), rows[0])
    for name in final.broken:
        report.add(
            "I4", f"the tables contradict each other: {name} (see fencerow_proof/arena/invariants.sql)"
        )


def _walk(report: Report, job: str, noted: list[Noted], row: FinalRow) -> None:
    state, attempt = State.QUEUED, 0
    for note in noted:
        move = MOVE_OF.get(note.kind)
        if move is None:
            continue
        rule = RULES[move]
        if state is State.QUEUED and State.RUNNING in rule.sources and note.attempt > attempt:
            state, attempt = State.RUNNING, note.attempt  # claims are told by the attempts that end
        if move is JobMove.REVIVE and state is State.QUEUED and row_moved_on(note, attempt):
            state, attempt = State.SUCCEEDED, note.attempt  # a success leaves no note
        became = State(note.became) if note.became is not None else rule.target
        if (
            state not in rule.sources
            or became not in (rule.target, *rule.otherwise)
            or note.attempt < attempt
        ):
            what = f"its timeline says {note.kind} in attempt {note.attempt} while it was {state}"
            report.add("I4", what, job, _acts(report, job))
            return
        assert became is not None
        state, attempt = _in_line(became), note.attempt
    _ends_at(report, job, state, attempt, row)


def _in_line(state: State) -> State:
    """Turns and waits for labels leave no note that a claim needs: whoever waits may be queued, and the reverse."""
    return State.QUEUED if state is State.WAITING else state


def row_moved_on(note: Noted, attempt: int) -> bool:
    """Whether an attempt began after the last that is noted, and was over when this was noted."""
    return note.attempt > attempt


def _ends_at(report: Report, job: str, state: State, attempt: int, row: FinalRow) -> None:
    """The row is where the timeline ends, or one claim further, or at the success of that claim.

    No note tells whether a job is queued, or waits for its turn or a label.
    """
    if _in_line(row.state) is state and row.attempt == attempt:
        return
    if state is State.QUEUED and row.attempt > attempt and row.state in (State.RUNNING, State.SUCCEEDED):
        return
    if state in FINAL or row.attempt < attempt or row.state not in (State.RUNNING, State.SUCCEEDED):
        what = (
            f"its timeline ends {state} in attempt {attempt}, its row is {row.state} in attempt {row.attempt}"
        )
        report.add("I4", what, job, _acts(report, job))


def _acts(report: Report, job: str) -> list[Act]:
    return report.history.by_job.get(job, [])
