"""What a job does when it runs again, beside what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import JobRecord
from fencerow.core.model.packed import Bound
from fencerow.core.model.state import State
from fencerow.db.text import shortened
from fencerow.steps.errors import HistoryMismatch
from fencerow.steps.model import Kind as StepKind
from fencerow.steps.model import Step
from fencerow.steps.results import unpacked
from fencerow_proof.check.kinds import UNDECLARED, Action, Kind
from fencerow_proof.check.wire import Ended
from fencerow_proof.errors import CheckNeedsMore
from fencerow_proof.rerun.ground import Ran
from fencerow_proof.rerun.stored import StoredJob

SHOWN_MAX = 300  # characters of a value on a line
BOUNDS = (Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK)
STATES = {"Suspended": State.WAITING, "Failed": State.FAILED, "Retried": State.FAILED}


class StepAgain(msgspec.Struct, frozen=True):
    """One step, then and now. `verdict`: remembered, same, differs, new, or not asked for."""

    name: str
    kind: str
    then: Any
    now: Any
    verdict: str


class End(msgspec.Struct, frozen=True):
    """How a run ended. `error`: its type and message; of one that waits, what for."""

    state: str
    result: Any = None
    error: str | None = None
    place: str | None = None


class Written(msgspec.Struct, frozen=True):
    """What it wrote into one table of the scratch database, as rows on lines."""

    table: str
    added: tuple[str, ...]
    gone: tuple[str, ...]


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """A job that ran again beside its database. `differs`: in words where it came to something else than it did."""

    job_id: str
    name: str
    steps: list[StepAgain]
    actions: list[str]
    refused: list[str]
    follow_ups: list[str]
    written: list[Written]
    then: End
    now: End
    differs: list[str]

    @property
    def same(self) -> bool:
        return not self.differs

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"job {self.job_id} ({self.name}) ran again on a scratch database; nothing of the real one was written"
        yield from _part("steps", (_step_line(each) for each in self.steps))
        yield from _part("what it did", self.actions)
        yield from _part("refused, since nobody declared or allowed it", self.refused)
        rows = [
            *(f"{each.table}: {row}" for each in self.written for row in each.added),
            *(f"{each.table}: no longer {row}" for each in self.written for row in each.gone),
            *(f"job submitted with its success: {each}" for each in self.follow_ups),
        ]
        yield from _part("what it would have written", rows)
        yield ""
        yield f"then: {_end_line(self.then)}"
        yield f"now: {_end_line(self.now)}"
        yield from (f"differs: {each}" for each in self.differs)
        if self.same:
            yield "it came to the same"


def compared(stored: StoredJob, kept: Sequence[Step], ran: Ran, handler: Handler) -> Rerun:
    """What the run came to, beside what is stored of the job.

    Raises:
        HistoryMismatch: the code asks for another step than the history has. CheckNeedsMore: its process died.
    """
    ended = ran.process.ended
    if ended is None:
        raise CheckNeedsMore("the handler's process died", "it ended without an answer", "look at its log")
    if ended.raised == HistoryMismatch.__name__:
        raise HistoryMismatch(
            (ended.error or "").removeprefix(f"{HistoryMismatch.__name__}: "),
            "the code was changed since, or asks for steps in an order that changes",
            "run it again from an earlier step (--from), or by the code that ran it",
        )
    steps = list(_steps(stored, kept, ran, handler))
    then, now = _then(stored.record, handler), _now(ran, ended, handler)
    actions = [each for each in ran.process.trace if _is_theirs(each, ran.ours)]
    refused = [*(each for each in actions if each.kind in UNDECLARED and each.number in ran.process.failed)]
    return Rerun(
        job_id=stored.record.id,
        name=stored.record.name,
        steps=steps,
        actions=[f"{each.line}  ({each.place})" for each in actions if each not in refused],
        refused=[f"{each.kind} {each.line}  ({each.place})" for each in (*refused, *ran.process.seen)],
        follow_ups=[f"{name} {args}" for name, args in ended.follow_ups],
        written=[
            Written(each.table, each.extra, each.missing)
            for each in ran.written
            if not each.table.startswith("the job's")
        ],
        then=then,
        now=now,
        differs=[*_differing(steps), *_differing_ends(then, now)],
    )


def _steps(stored: StoredJob, kept: Sequence[Step], ran: Ran, handler: Handler) -> Iterator[StepAgain]:
    known, now = {each.name: each for each in stored.steps}, {each.name: each for each in ran.steps}
    remembered = {each.name for each in kept}
    for name in sorted(known | now, key=lambda name: ((now.get(name) or known[name]).seq, name)):
        first, second = (_step_value(handler, stored.record.id, each.get(name)) for each in (known, now))
        either = now.get(name) or known[name]
        if name in remembered:
            verdict = "remembered"
        elif name not in known:
            verdict = "new"
        elif name not in now:
            verdict = "not asked for"
        else:
            verdict = "same" if first == second else "differs"
        yield StepAgain(name, either.kind.value, first, second, verdict)


def _step_value(handler: Handler, job_id: str, step: Step | None) -> Any:
    if step is None:
        return None
    if step.kind is not StepKind.STEP:
        return msgspec.json.decode(step.result)
    return _read(lambda: unpacked(handler.packing, job_id, step.name, step.result))


def _result(handler: Handler, record: JobRecord) -> Any:
    if record.state is not State.SUCCEEDED:
        return None
    stored = msgspec.json.encode(record.result)
    return _read(lambda: handler.packing.unpack(stored, Bound.result(record.id)))


def _read(unpack: Any) -> Any:
    try:
        return msgspec.json.decode(unpack())
    except FencerowError as error:
        return f"(not readable here: {error.what})"


def _then(record: JobRecord, handler: Handler) -> End:
    error = record.error if isinstance(record.error, dict) else {}
    told = f"{error.get('type')}: {error.get('message')}" if error else None
    return End(record.state.value, _result(handler, record), told)


def _now(ran: Ran, ended: Ended, handler: Handler) -> End:
    if ran.record.state is State.SUCCEEDED:
        return End(State.SUCCEEDED.value, _result(handler, ran.record))
    state = STATES.get(ended.outcome)
    return End(ended.outcome.lower() if state is None else state.value, None, ended.error, ended.place)


def _differing(steps: Sequence[StepAgain]) -> Iterator[str]:
    for each in steps:
        if each.verdict in ("differs", "new", "not asked for"):
            yield f"the {each.kind} {each.name!r}: {each.verdict}"


def _differing_ends(then: End, now: End) -> Iterator[str]:
    if then.state != now.state:
        yield f"it was {then.state}, and is {now.state} now"
    elif then.result != now.result:
        yield "its result"
    elif now.state == State.FAILED.value and _kind(then.error) != _kind(now.error):
        yield "its error"


def _kind(error: str | None) -> str:
    return (error or "").partition(":")[0]


def _is_theirs(action: Action, ours: tuple[str, ...]) -> bool:
    """Whether the handler did it: no bound of a transaction, and no statement on our own tables alone."""
    if action.kind in BOUNDS:
        return False
    touched = (*action.reads, *action.writes)
    return not touched or not all(table.startswith(ours) for table in touched)


def _part(title: str, lines: Any) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in found)


def _step_line(each: StepAgain) -> str:
    if each.verdict == "differs":
        return f"{each.name}: differs: {_shown(each.then)}, and now {_shown(each.now)}"
    return (
        f"{each.name}: {each.verdict}: {_shown(each.then if each.verdict == 'not asked for' else each.now)}"
    )


def _end_line(end: End) -> str:
    told = end.error if end.error is not None else _shown(end.result) if end.result is not None else ""
    return " ".join(filter(None, (end.state, told and f"({told})", end.place and f"at {end.place}")))


def _shown(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), SHOWN_MAX)
