"""The steps of one run, beside those that the job remembers of earlier ones. No I/O.

A step is answered by its name. Its place tells whether code and history still agree: steps that a run asks for one
after the other come in the same order in every run. Of steps that run beside others the order may differ, so from the
first of those on names alone count.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

from fencerow.db.text import check_text, shown
from fencerow.steps.errors import HistoryMismatch, StepsSpent, StepTwice
from fencerow.steps.model import Kind, Step
from fencerow.steps.settings import StepSettings

NAME_LENGTH_MAX: Final = 200


class Asked(NamedTuple):
    """A step that the run asks for: its place, and what is remembered of it; None: it is still to be done."""

    name: str
    kind: Kind
    seq: int
    beside: bool
    known: Step | None


class History:
    """What one run has asked for so far. May be asked from several threads."""

    def __init__(self, remembered: Sequence[Step], settings: StepSettings | None = None) -> None:
        self._settings = settings or StepSettings()
        self._known = {step.name: step for step in remembered}
        self._by_seq = {step.seq: step for step in remembered}
        self._last_seq = max(self._by_seq, default=0)
        # From this place on names alone count.
        self._loose_from = min((step.seq for step in remembered if step.beside), default=None)
        self._bytes = sum(len(step.result) for step in remembered)
        self._count = len(remembered)
        self._asked: set[str] = set()
        self._seq = 0
        self._latest = ""
        self._under_way = 0
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def numbered(self, name: str) -> str:
        """The name itself when it is asked for the first time, and with a number after that: "sleep", "sleep 2"."""
        with self._lock:
            count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name} {count}"

    def ask(self, name: str, kind: Kind) -> Asked:
        """The run asks for this step. `left` must follow.

        Raises:
            InvalidInput: no step can have such a name. StepTwice: the run has asked for it before.
            HistoryMismatch: the history has another one at this place.
            StepsSpent: it is one too many. Nothing was stored.
        """
        check_text(name, "the name of a step", NAME_LENGTH_MAX + 20)
        with self._lock:
            if name in self._asked:
                raise StepTwice(
                    f"the run asks for the step {shown(name)} twice",
                    "a step is remembered by its name",
                    'give each its own name, such as f"page {number}"',
                )
            known = self._known.get(name)
            seq = self._seq + 1
            beside = self._under_way > 0
            self._compare(name, kind, known, seq)
            if known is None and self._count >= self._settings.steps_max:
                raise StepsSpent(
                    f"the job remembers {self._count} steps, and asks for {shown(name)}",
                    f"a job remembers at most {self._settings.steps_max} (steps_max)",
                    "do several things in one step, or let another job go on (job.submit_next)",
                )
            self._asked.add(name)
            self._latest = name
            self._seq = seq
            self._under_way += 1
            if beside:
                self._loose_from = min(seq, self._loose_from or seq)
            return Asked(name, kind, seq, beside, known)

    def left(self) -> None:
        """A step that was asked for is no longer under way."""
        with self._lock:
            self._under_way -= 1

    def check_room(self, name: str, result: str) -> None:
        """Whether a result can be remembered.

        Raises:
            StepsSpent: the results would have more bytes than a job may remember.
        """
        with self._lock:
            if self._bytes + len(result) > self._settings.steps_bytes_max:
                raise StepsSpent(
                    f"the step {shown(name)} has a result of {len(result)} bytes, beside {self._bytes} of other steps",
                    f"the results of a job's steps have at most {self._settings.steps_bytes_max} bytes together "
                    "(steps_bytes_max)",
                    "return where the data is, not the data, or let another job go on (job.submit_next)",
                )

    def remembered(self, result: str) -> None:
        """One more is remembered."""
        with self._lock:
            self._bytes += len(result)
            self._count += 1

    def is_ahead(self) -> bool:
        """Whether an earlier run has come further than this one is now."""
        with self._lock:
            return self._last_seq > self._seq and self._known.keys() > self._asked & self._known.keys()

    @property
    def last(self) -> str:
        """The step that the run has asked for last."""
        return self._latest

    def following(self) -> str:
        """The first remembered step that the run has not asked for, for people."""
        left = min(
            (each for each in self._known.values() if each.name not in self._asked), key=lambda each: each.seq
        )
        return f"{left.kind} {shown(left.name)} at place {left.seq}"

    def knows(self, name: str) -> bool:
        """Whether a step of this name is remembered."""
        return name in self._known

    def _compare(self, name: str, kind: Kind, known: Step | None, seq: int) -> None:
        if known is not None and known.kind is not kind:
            raise _mismatch(f"{kind} {shown(name)}", f"{known.kind} {shown(known.name)}", seq)
        if self._loose_from is not None and seq >= self._loose_from:
            return
        there = self._by_seq.get(seq)
        if there is not None and there.name != name:
            raise _mismatch(f"{kind} {shown(name)}", f"{there.kind} {shown(there.name)}", seq)
        if known is not None and known.seq != seq:
            raise _mismatch(
                f"{kind} {shown(name)}", f"nothing there, and {shown(name)} at place {known.seq}", seq
            )


def _mismatch(asked: str, found: str, seq: int) -> HistoryMismatch:
    return HistoryMismatch(
        f"the code asks for {asked} at place {seq} of its run, and the job's history has {found}",
        "the code was changed while the job was on its way, or asks for steps in an order that changes",
        "put the change into `if job.patched(...)`, or run the job by the code that began it",
    )
