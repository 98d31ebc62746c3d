"""What was found at a line, and what it means."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class NoteLevel(StrEnum):
    """Who is to look at it. `DANGER`: it can lose work, or do it twice, as it runs today."""

    BECOMES = "becomes"
    PERSON = "person"
    DANGER = "danger"


class Note(msgspec.Struct, frozen=True):
    """`kind`: task, option, call, workflow, schedule, setting, pattern. `found`: what stands there, in short."""

    file: str
    line: int
    kind: str
    level: NoteLevel
    found: str
    means: str


class Passed(msgspec.Struct, frozen=True):
    """A file that was passed over, and why."""

    file: str
    why: str


class Audit(msgspec.Struct, frozen=True):
    """All of a code base. `files`: how many were read; `stopped`: why the rest of them was not, if there are more."""

    path: str
    files: int
    tasks: int
    notes: tuple[Note, ...]
    passed: tuple[Passed, ...]
    stopped: str | None
