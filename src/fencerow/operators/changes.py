"""Change of jobs that nobody runs: locked, changed under the guard of their state, and told in their timelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fencerow.core.errors import FencerowError, IllegalMove, InvalidInput
from fencerow.core.model.change import JobChanged, NewArguments
from fencerow.core.model.job import Fence
from fencerow.core.model.packed import PACKED, fingerprint
from fencerow.core.model.state import FINAL, State
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.moves import CANCEL_PATIENCE_S, moved_or_refused, not_found
from fencerow.db.run import Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.operators.job_change import JobChange
from fencerow.turns.changing import Elsewhere, Idle, leave, new_turns, refuse_unkept, told_apart

PLAIN = ("ids", "queue", "priority", "run_at_us", "delay_s", "at_once", "args", "args_bytes", "options")


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the document of `change`: what these jobs shall be."""

    ids: list[str]
    queue: str | None
    priority: int | None
    run_at_us: int | None
    delay_s: float | None
    at_once: bool
    args: str | None = None
    args_bytes: int | None = None
    options: str | None = None
    elsewhere: Elsewhere | None = None

    @property
    def what(self) -> tuple[object, ...]:
        """What two lines have in common whose jobs may be in one."""
        return self.args, self.options, self.elsewhere

    @property
    def as_told(self) -> dict[str, object]:
        """As the statement reads it."""
        line = {name: getattr(self, name) for name in PLAIN}
        new = self.elsewhere
        if new is None:
            return {**line, "elsewhere": False}
        turns = {"place": new.place, "new_exclusive": new.exclusive, "new_limits": new.limits}
        return {**line, "elsewhere": True, **turns}


@operation(patience_s=CANCEL_PATIENCE_S)
def change(
    job_id: str, wanted: JobChange, *, actor: str | None, reason: str | None = None
) -> Steps[JobChanged]:
    """Change a job that nobody runs.

    The row is locked until the transaction ends: a claim leaves it alone meanwhile. Made again it is the same
    change, unless it counts from now.

    Raises:
        IllegalMove: it runs, or it has ended. `state` says which.
        InvalidInput: it would expire before it is due, or the new arguments do not fit. Nothing is changed.
        OlderWorkers, UnknownLimit: with the new arguments it needs what is not there. Nothing is changed.
        JobNotFound: there is no such job.
        Busy: a transaction of somebody's locks the job. Nothing was changed; try again.
    """

    def changed() -> Steps[JobChanged | None]:
        locked = yield from execute("lock_idle", ids=[job_id], with_args=wanted.arguments is not None)
        idle = [_idle(row) for row in locked]
        if not idle:
            return None
        line = _of(idle[0], wanted)
        if line.elsewhere is not None:
            yield from refuse_unkept(line.elsewhere)
        done = yield from _changed(idle, [line], actor, reason)
        return done[0] if done else None

    return (yield from moved_or_refused(job_id, changed, unchangeable, "change it again"))


@operation(patience_s=CANCEL_PATIENCE_S)
def change_many(
    ids: Sequence[str], wanted: JobChange, *, actor: str | None, reason: str | None = None
) -> Steps[list[JobChanged]]:
    """Change those of these jobs that nobody runs, that nobody has locked, and that the change fits."""
    idle: list[Idle] = []
    lines: list[_Wanted] = []
    locked = yield from execute("lock_free_idle", ids=list(ids), with_args=wanted.arguments is not None)
    for row in locked:
        job = _idle(row)
        try:
            line = _of(job, wanted)
            if line.elsewhere is not None:
                yield from refuse_unkept(line.elsewhere)
        except FencerowError:
            continue  # changed alone it is told why not
        lines.append(line)
        idle.append(job)
    return (yield from _changed(idle, lines, actor, reason))


def unchangeable(job_id: str, fence: Fence | None) -> FencerowError | None:
    """Why a job that stands so cannot be changed; None if it can."""
    if fence is None:
        return not_found(job_id)
    if fence.state not in FINAL and fence.state is not State.RUNNING:
        return None
    return IllegalMove(
        f"job {job_id} is {fence.state}",
        "only a waiting or queued job can be changed",
        "cancel it and submit the work again"
        if fence.state is State.RUNNING
        else "revive it, then change it",
        state=fence.state,
    )


def _changed(
    idle: Sequence[Idle], lines: Sequence[_Wanted], actor: str | None, reason: str | None
) -> Steps[list[JobChanged]]:
    if not idle:
        return []
    before = {job.id: job for job in idle}
    left = [before[job_id].read for line in lines if line.elsewhere is not None for job_id in line.ids]
    if left:  # somebody may have its turn there now
        yield from leave(left)
    rows = yield from execute("change", changes=_document([line.as_told for line in _together(lines)]))
    new_args = {job_id: line.args is not None for line in lines for job_id in line.ids}
    done = [_told(before[str(row[0])], row, new_args[str(row[0])]) for row in rows]
    notes = [
        {"id": each.id, "detail": _detail(before[each.id], each, reason)} for each in done if each.changes
    ]
    if notes:
        yield from execute("note_changed", notes=_document(notes), actor=actor)
    return done


def _idle(row: Row) -> Idle:
    """A row of `lock_idle`."""
    return Idle(
        str(row[0]), str(row[1]), str(row[2]), as_int(row[3]), as_int(row[4]), as_int(row[5]),
        text_or_none(row[6]), text_or_none(row[7]), as_int_or_none(row[8]), as_int(row[9]), row[10:],
    )  # fmt: skip


def _of(job: Idle, wanted: JobChange) -> _Wanted:
    """What this job shall be.

    Raises:
        InvalidInput: it would expire before it is due, or the new arguments do not fit its name.
    """
    _refuse_late(job, wanted)
    line = _Wanted(
        ids=[job.id],
        queue=wanted.queue,
        priority=wanted.priority,
        run_at_us=wanted.run_at_us,
        delay_s=wanted.delay_s,
        at_once=wanted.at_once,
    )
    if wanted.arguments is None:
        return line
    new = wanted.arguments(job.name)
    elsewhere = new_turns(job, new)
    args = _stored(job, new)
    options = job.options if new.version is None else _with_args_version(job.options, new.version)
    if (args, options) == (job.args, job.options):
        return line
    size = len(args.encode())
    return msgspec.structs.replace(line, args=args, args_bytes=size, options=options, elsewhere=elsewhere)


def _stored(job: Idle, new: NewArguments) -> str:
    """The new arguments as they are stored with this job.

    Raises:
        InvalidInput: those before are sealed or signed, and how that is done is not known here.
    """
    if new.packed is not None:
        return new.packed(job.id)
    if (job.args or "").encode().startswith(PACKED):
        raise InvalidInput(
            f"the arguments of job {job.id} are sealed or signed",
            "new ones without that would be refused by the workers, and here is no key",
            "change it by the client of its app (-A on the command line)",
        )
    return new.text


def _refuse_late(job: Idle, wanted: JobChange) -> None:
    due_us = wanted.run_at_us
    if wanted.delay_s is not None:
        due_us = job.now_us + round(wanted.delay_s * 1_000_000)
    if due_us is not None and job.expires_us is not None and due_us >= job.expires_us:
        raise InvalidInput(
            f"job {job.id} would expire {(due_us - job.expires_us) / 1e6:.1f} s before it is due",
            "what was submitted with expires_s must start within it",
            "choose an earlier time, or submit the work again",
        )


def _together(lines: Sequence[_Wanted]) -> list[_Wanted]:
    """Jobs of which the same is wanted in one line: their arguments travel once."""
    alike: dict[tuple[object, ...], list[str]] = {}
    first: dict[tuple[object, ...], _Wanted] = {}
    for line in lines:
        first.setdefault(line.what, line)
        alike.setdefault(line.what, []).extend(line.ids)
    return [msgspec.structs.replace(first[what], ids=ids) for what, ids in alike.items()]


def _told(job: Idle, row: Row, new_args: bool) -> JobChanged:
    now = {
        "queue": str(row[2]),
        "priority": as_int(row[3]),
        "run_at_us": as_int(row[4]),
        "args_bytes": as_int(row[5]),
    }
    changes: dict[str, tuple[Any, Any]] = {
        name: (getattr(job, name), is_now)
        for name, is_now in now.items()
        if getattr(job, name) != is_now or (name == "args_bytes" and new_args)
    }
    changes |= told_apart(job.read, row[7:])
    return JobChanged(job.id, str(row[1]), str(row[2]), as_int(row[3]), as_int(row[4]), changes, str(row[6]))


def _detail(job: Idle, done: JobChanged, reason: str | None) -> dict[str, Any]:
    """What the timeline keeps. Of the arguments before only what identifies them: a repeated submit is known by it."""
    detail: dict[str, Any] = dict(done.changes)
    if job.args is not None and "args_bytes" in done.changes:
        detail["args_was"] = fingerprint(job.name, job.args.encode())
    return detail if reason is None else {**detail, "reason": reason}


def _document(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _with_args_version(options: str | None, args_version: int) -> str | None:
    """The stored text with another version of the arguments; what else stands in it stays, as the bytes it was."""
    try:
        fields = {} if options is None else msgspec.json.decode(options, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return options  # what nobody can read tells of no version, and is left to whoever mends it
    fields.pop("args_version", None)
    if args_version != 1:
        fields = {"args_version": msgspec.Raw(msgspec.json.encode(args_version)), **fields}
    return msgspec.json.encode(fields).decode() if fields else None
