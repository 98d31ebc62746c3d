"""The record format: one JSON line per event, in one file per process.

    {"kind":"begin","process":"4711-9f3a1c","mono_us":…,"wall_us":…,"boot":"…","host":"…","pid":4711,"version":1}
    {"kind":"invoke","process":"4711-9f3a1c","op":7,"step":1,"verb":"succeed","mono_us":…,"job":"…","attempt":2,"holder":"…"}
    {"kind":"ok","process":"4711-9f3a1c","op":7,"step":1,"verb":"succeed","mono_us":…,"job":"…","attempt":2,"holder":"…","state":"succeeded"}

- An **operation** (`op`, counted per process) is one transaction. A **step** of it is one statement that writes,
  and `verb` is that statement's name in the store: submit, reserve_keys, claim, succeed, requeue, reclaim, renew …
- `invoke` is written before the statement is sent. Its end is one of
  `ok` (committed; of this job the verb did what it says),
  `fail` (certainly without effect: rolled back, or refused by its guard, `code` "refused"),
  `info` (unknown: it may have happened or not; `code` is the error's).
  A step on several jobs has one line per job, at both ends. A verb whose jobs are known only afterwards (claim,
  reclaim, expire …) has one `invoke` without a job, and at its end one line per job, or one without a job.
  A `succeed` that stands alone has such a line of the verb `hand_over` beside its own: an end may queue the next.
- **An `invoke` without an end is `info`**: its process was killed, or its history could not be written.
- `mono_us` is the machine's monotonic clock: comparable between processes of one `boot`. `db_us` is the database's
  clock as last seen by this process (absent while it was not). Both are microseconds.
- `run` (a handler began and ended) and `effect` (a line of an outside sink) are verbs too; they belong to no statement.
- Fields that do not apply are left out. Readers ignore fields that they do not know, and a torn last line.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

VERSION = 1
REFUSED = "refused"
UNEXPECTED = "unexpected "  # before the kind of an error that is neither ours nor the database's trouble


class Kind(StrEnum):
    """What a line is about: the head of a file, the start of a step, or one of its three ends."""

    BEGIN = "begin"
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event. `state` is where the job went; `new` whether a submit inserted it or a key was free."""

    kind: Kind
    process: str
    mono_us: int
    op: int = 0
    step: int = 0
    verb: str = ""
    db_us: int | None = None
    job: str | None = None
    attempt: int | None = None
    holder: str | None = None
    state: str | None = None
    how: str | None = None  # of a requeue: retried, snoozed, released
    queue: str | None = None
    name: str | None = None  # of the job, where it is submitted
    suspect: bool = False
    new: bool | None = None
    scope: str | None = None
    key: str | None = None
    fingerprint: str | None = None
    exclusive: str | None = None  # the turns that it needs, where it is submitted
    exclusive_at_once: int | None = None
    strict: bool = False
    limits: tuple[str, ...] | None = None  # that it names; of a hand_over, at whose gates it looked
    affinity: str | None = None  # the label for which it waits
    limit: int | None = None  # of a claim
    labels: tuple[str, ...] | None = None  # that the worker carries
    slots: int | None = None  # of a registration
    lease_s: float | None = None
    code: str | None = None
    tries: int | None = None  # how often the engine began the operation, if more than once
    # --- only in the head of a file ---
    wall_us: int | None = None
    boot: str | None = None
    host: str | None = None
    pid: int | None = None
    version: int | None = None
    sweep_s: float | None = None
