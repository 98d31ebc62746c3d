"""What a check says: findings with their places, four answers with their evidence, and how much was tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec


class Fault(StrEnum):
    """What is wrong, as one word."""

    INSERTED_TWICE = "inserted-twice"
    CHANGED_TWICE = "changed-twice"
    LEFT_UNDONE = "left-undone"
    RESULT_DIFFERS = "result-differs"
    CALLED_TWICE = "called-twice"
    CALL_LOST = "call-lost"
    SECOND_RUN_FAILS = "second-run-fails"
    RACE = "race"
    UNDECLARED_FILE = "undeclared-file"
    UNDECLARED_SOCKET = "undeclared-socket"
    UNDECLARED_PROCESS = "undeclared-process"
    SWALLOWED = "error-swallowed"
    REPLACE_TORN = "replace-torn"
    REPLACE_RACES = "replace-races"
    SCHEMA_UNLOCKED = "schema-unlocked"


class Question(StrEnum):
    """The four questions that a check answers."""

    SCHEMA = "locked schema changes"
    REPLACE = "atomic and race-safe replace"
    RERUN = "idempotent re-run"
    LOUD = "loud failure"


QUESTION_OF = {
    Fault.SCHEMA_UNLOCKED: Question.SCHEMA,
    Fault.REPLACE_TORN: Question.REPLACE,
    Fault.REPLACE_RACES: Question.REPLACE,
    Fault.SWALLOWED: Question.LOUD,
}


@dataclass(frozen=True)
class Finding:
    """One divergence: what is wrong, at which line of the handler, and how it came about.

    `related` are other lines that have a part in it, such as the read before a write; `story` what was done,
    `rows` what differed.
    """

    fault: Fault
    place: str
    text: str
    what: str
    table: str | None = None
    related: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    seen: int = 1  # at how many points, or in how many orders, it was met

    @property
    def question(self) -> Question:
        """Which answer it makes a no."""
        return QUESTION_OF.get(self.fault, Question.RERUN)


@dataclass(frozen=True)
class Answer:
    """Yes or no to one question, and why."""

    question: Question
    yes: bool
    evidence: tuple[str, ...]


@dataclass
class Report:
    """What a check of one handler found. `ok` means four times yes; `sampled` that not all orders were played."""

    job: str
    engine: str
    answers: tuple[Answer, ...] = ()
    findings: tuple[Finding, ...] = ()
    actions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: dict[str, int] = field(default_factory=dict)
    sampled: bool = False  # not all orders side by side were played: a yes says so much less
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(answer.yes for answer in self.answers)

    def found(self, fault: Fault | str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.fault == fault]

    def answer(self, question: Question) -> Answer:
        """The answer to one question."""
        return next(each for each in self.answers if each.question is question)

    def lines(self) -> list[str]:
        """The report for people."""
        tried = ", ".join(f"{number} {what}" for what, number in self.tried.items())
        lines = [
            f"{self.job} on {self.engine}: {tried}, {self.seconds:.1f} s",
            "",
            "actions of one clean run:",
        ]
        lines += [f"  {number}. {action}" for number, action in enumerate(self.actions, 1)]
        for finding in self.findings:
            lines += ["", f"{finding.fault.value} at {finding.place}", f"  {finding.what}"]
            lines += [f"  {finding.text}"] if finding.text else []
            lines += [f"  see also {place}" for place in finding.related]
            lines += [f"  {line}" for line in (*finding.story, *finding.rows)]
        lines += ["", *(f"note: {note}" for note in self.notes)]
        for answer in self.answers:
            lines.append(f"{answer.question.value}: {'yes' if answer.yes else 'no'}")
            lines += [f"  {line}" for line in answer.evidence]
        if self.ok and self.sampled:
            lines += [
                "",
                "nothing was found, but only a sample of the orders was played: --orders plays more",
            ]
        return lines

    def text(self) -> str:
        """The report as one text, such as the message of an assertion."""
        return "\n".join(self.lines())

    def document(self) -> dict[str, Any]:
        """The report as data for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {"ok": self.ok, **found}
