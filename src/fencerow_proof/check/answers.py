"""The four answers, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow_proof.check.findings import shown
from fencerow_proof.check.kinds import UNDECLARED, Action, Kind
from fencerow_proof.check.report import Answer, Fault, Finding, Question

UNDECLARED_FAULT = {
    Kind.FILE: Fault.UNDECLARED_FILE,
    Kind.SOCKET: Fault.UNDECLARED_SOCKET,
    Kind.PROCESS: Fault.UNDECLARED_PROCESS,
}
UNDECLARED_WHAT = {
    Kind.FILE: "a file is changed, which no transaction undoes: write it to the database, or allow it (file:PATH)",
    Kind.SOCKET: "another system is called, which was refused: declare the call, or allow it (socket:HOST:PORT)",
    Kind.PROCESS: "a program is started, whose doings nobody sees: declare the call, or allow it (process:NAME)",
}


def undeclared(actions: Sequence[Action]) -> list[Finding]:
    """What left the process without being declared: it cannot be said what a second run makes of it."""
    return [
        Finding(UNDECLARED_FAULT[action.kind], action.place, action.line, UNDECLARED_WHAT[action.kind])
        for action in actions
        if action.kind in UNDECLARED
    ]


def answer_all(findings: Sequence[Finding], good: dict[Question, list[str]]) -> tuple[Answer, ...]:
    """Each question is answered no by its findings, else yes by what was tried."""
    answers = []
    for question in Question:
        against = [finding for finding in findings if finding.question is question]
        evidence = [f"{each.fault.value} at {each.place}: {each.what}" for each in against]
        answers.append(Answer(question, not against, tuple(evidence or good[question])))
    return tuple(answers)


def replace_evidence(tables: dict[str, Action], looks: int) -> list[str]:
    """Why replacing is safe, if there is any."""
    if not tables:
        return ["nothing to show: no table is deleted from and then inserted into"]
    return [
        f"{table} ({shown(action)}): looked at {looks} times in between, and in every order of two runs"
        for table, action in tables.items()
    ]
