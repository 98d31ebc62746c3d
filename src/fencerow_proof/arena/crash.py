"""Stops an operation at every point where a process can die, recovers as documented, and drains.

The points of an operation: before and after each statement, with the statement sent and its reply not
awaited, and after COMMIT with the reply unseen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from fencerow.core.errors import FencerowError
from fencerow.core.model.lane import SHARE, SUSPECT
from fencerow.core.model.state import FINAL
from fencerow.core.store import store
from fencerow.db.run import Operation, Steps
from fencerow.operators import looking
from fencerow.operators.queues import resume_queue
from fencerow.testing.sweeping import Script, sweep
from fencerow_proof.arena.actor import later
from fencerow_proof.arena.invariants import History

T = TypeVar("T")

LABELS = ("gpu",)  # that whoever works off carries
ROUNDS_MAX = 20
FAR_S = 7200.0  # beyond every lease, deadline and delay of a case


@dataclass(frozen=True, slots=True)
class Point:
    """Where it ends; `committed` is after the last statement and the commit."""

    when: Literal["before", "sent", "after", "committed"]
    statement: int = 0

    def __str__(self) -> str:
        return self.when if self.when == "committed" else f"{self.when} statement {self.statement + 1}"


@dataclass(frozen=True, slots=True)
class Case:
    """An operation, what was before, and how its caller reacts when it does not know the outcome.

    After reaction and drain each job of `jobs` has ended. `may_be_gone`: those that the operation removes.
    """

    name: str
    setup: Callable[[], Script]
    operation: Operation[Any]
    react: Callable[[], Script]
    jobs: tuple[str, ...] = ()
    may_be_gone: tuple[str, ...] = ()


class CrashArena(Protocol):
    """A database in which operations are broken off."""

    mode: str

    def clear(self) -> None: ...

    def run(self, operation: Operation[T]) -> T: ...

    def break_at(self, operation: Operation[Any], point: Point) -> None: ...

    def invariants(self) -> list[str]: ...

    def look(self, history: History, *, moves: int = 1) -> None: ...


class Unrecovered(AssertionError):
    """After a crash something did not hold, or some job cannot come to an end."""


def points(statements: int, *, alone: bool) -> Iterator[Point]:
    """Every point of an operation with so many statements."""
    for number in range(statements):
        yield Point("before", number)
        yield Point("sent", number)
        if not alone:
            yield Point("after", number)
    yield Point("committed")


def crash_everywhere(arena: CrashArena, case: Case) -> tuple[int, float]:
    """Play the case once for each point; returns how many there are and how long it took.

    Raises:
        Unrecovered: names the case and the point.
    """
    started = time.monotonic()
    statements = _count(arena, case)
    found = list(points(statements, alone=case.operation.alone))
    for point in found:
        crash(arena, case, point)
    return len(found), time.monotonic() - started


def crash(
    arena: CrashArena,
    case: Case,
    point: Point,
    break_at: Callable[[Operation[Any], Point], None] | None = None,
) -> None:
    """Break the operation off at one point, react, drain, and check. `break_at` replaces the arena's own way."""
    history = History()
    arena.clear()
    try:
        _play(arena, case.setup(), history)
        (break_at or arena.break_at)(case.operation, point)
        _look(arena, history)
        _play(arena, case.react(), history)
        _play(arena, drain(), history)
        _ended(arena, case)
    except AssertionError as error:
        raise Unrecovered(f"{case.name}, {point}: {error}") from error


def drain() -> Script:
    """Let everything come to its end by what a healthy installation does: sweeps, and a worker that succeeds."""
    for number in range(ROUNDS_MAX):
        yield later(FAR_S)
        holder = f"00000000-0000-4000-9000-{number:012d}"
        yield store.register(holder=holder, name="drain", host="h", pid=1, info="{}", lease_s=30.0)
        yield from sweep(holder)
        for job_id in (yield store.unmoved(limit=100)):
            yield store.move_late(job_id)
        queues = {count.queue for count in (yield looking.counts())}
        if not queues:
            return None
        for queue in sorted(queues):
            yield from _work_off(queue, holder)
        yield store.retire(holder=holder)
    raise AssertionError("some job does not come to its end")


def replaced(operation: Operation[T], start: Callable[[], Steps[T]]) -> Operation[T]:
    """An operation that touches what `operation` does, with other steps."""
    return Operation(
        operation.name,
        start,
        operation.alone,
        operation.repeatable,
        operation.writes,
        reads=operation.reads,
    )


def ending(operation: Operation[T], point: Point, end: Callable[[], NoReturn]) -> Operation[T]:
    """The same operation, which calls `end` at the point. `committed` is up to the caller, after its run."""

    def steps() -> Steps[T]:
        inner = operation.steps()
        number, statement = 0, next(inner)
        while True:
            if point == Point("before", number):
                end()
            rows = yield statement
            if point in (Point("after", number), Point("sent", number)):
                end()
            try:
                statement = inner.send(rows)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            number += 1

    return replaced(operation, steps)


def _work_off(queue: str, holder: str) -> Script:
    yield resume_queue(queue)
    lanes, _ = yield store.lanes(queue, LABELS)
    marks = [store.Mark(lane.priority, lane=lane.name) for lane in lanes]
    for shared in [mark for mark in marks if mark.lane == SHARE]:
        ring = yield store.ring(queue, shared.priority, "", "", names=["send"], limit=100)
        marks += [store.Mark(shared.priority, lane=member.lane) for member in ring.members]
    suspects = [mark for mark in marks if mark.lane.startswith(SUSPECT)]
    claim = store.claim(
        queue,
        [mark for mark in marks if mark not in suspects],
        holder=holder,
        names=["send"],
        limit=100,
        margin_s=10.0,
    )
    claimed = yield claim
    for _ in range(2):  # one at a time
        claimed += yield store.claim_suspect(
            queue, suspects, holder=holder, names=["send"], margin_s=10.0, at_most=2
        )
    for job in claimed:
        if not (yield store.succeed([store.Success(job.id, job.attempt, '"drained"')], holder=holder)):
            yield store.stop([store.Stop(job.id, job.attempt, None)], holder=holder)


def _count(arena: CrashArena, case: Case) -> int:
    """How many statements the operation has when nothing interferes."""
    seen = 0

    def counted() -> Steps[Any]:
        nonlocal seen
        inner = case.operation.steps()
        statement = next(inner)
        while True:
            seen += 1
            rows = yield statement
            try:
                statement = inner.send(rows)
            except StopIteration as stop:
                return stop.value

    arena.clear()
    _play(arena, case.setup(), History())
    operation = case.operation
    arena.run(replaced(operation, counted))
    return seen


def _play(arena: CrashArena, script: Script, history: History) -> None:
    """Run a script, and look after each operation."""
    try:
        operation = next(script)
        while True:
            try:
                result, refused = arena.run(operation), None
            except FencerowError as error:
                result, refused = None, error
            _look(arena, history)
            operation = script.send(result) if refused is None else script.throw(refused)
    except StopIteration:
        return


def _look(arena: CrashArena, history: History) -> None:
    arena.look(history)
    wrong = [*history.wrong, *arena.invariants()]
    assert not wrong, "; ".join(wrong)


def _ended(arena: CrashArena, case: Case) -> None:
    fences = arena.run(store.read_fences(list(case.jobs)))
    for job_id in case.jobs:
        fence = fences.get(job_id)
        if fence is None:
            assert job_id in case.may_be_gone, f"job {job_id} is lost"
        else:
            assert fence.state in FINAL, f"job {job_id} is {fence.state} for ever"
