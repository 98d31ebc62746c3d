"""What new arguments of a job make of its turns: its declaration may compute the key and the limits from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fencerow.core.errors import BlockingCall, FencerowError, InvalidInput
from fencerow.core.model.change import NewArguments
from fencerow.core.model.codec import args_version_of
from fencerow.core.model.rules import needed_of
from fencerow.core.store.decoding import read_or
from fencerow.core.store.gating import gating
from fencerow.core.store.workers import refuse_older
from fencerow.db.run import Row, Steps, text_or_none
from fencerow.turns.gates import KEY, LIMIT, gates_of
from fencerow.turns.limiting import refuse_unknown_limits

Turns = tuple[str | None, tuple[str, ...] | None]  # the exclusive key and the limits of a job


class Idle(msgspec.Struct, frozen=True):
    """A job that nobody runs, as whoever changes it reads it under its lock.

    `args` is there only where new ones are to come. `read`: its exclusive key and its limits, as they are stored.
    """

    id: str
    name: str
    queue: str
    priority: int
    run_at_us: int
    args_bytes: int
    options: str | None
    args: str | None
    expires_us: int | None
    now_us: int
    read: Row


class Elsewhere(msgspec.Struct, frozen=True):
    """The turns that a job needs from now on. `place`: the gate at which it waits first, None if it needs none."""

    place: str | None
    exclusive: str | None
    limits: tuple[str, ...] | None


class HadTurns(msgspec.Struct, frozen=True):
    """The exclusive key and the limits of a job, as they were read."""

    exclusive: str | None
    limits: tuple[str, ...] | None

    @property
    def both(self) -> Turns:
        """As declarations tell them."""
        return self.exclusive, self.limits


def had(read: Row) -> HadTurns:
    """The limits are None also where they cannot be read: many jobs are changed together."""
    key, limits = map(text_or_none, read)
    return HadTurns(key, None if limits is None else read_or(None, tuple[str, ...], limits))


def told_apart(was: Row, now: Row) -> dict[str, tuple[Any, Any]]:
    """What differs, by the names of the options."""
    before, after = msgspec.structs.asdict(had(was)), msgspec.structs.asdict(had(now))
    return {name: (before[name], after[name]) for name in after if before[name] != after[name]}


def new_turns(job: Idle, new: NewArguments) -> Elsewhere | None:
    """The turns that it needs with its new arguments; None: those that it has.

    What the declaration says counts where the job's turns come from there. Those that a submit named itself stay.

    Raises:
        InvalidInput: nobody can tell.
    """
    turns = had(job.read)
    if new.column_of is None:
        if turns.both == (None, None):
            return None
        raise _unknown(job, turns, "the declaration, which tells the turns of arguments, is not at hand here")
    now, before = _turns_of(new.column_of, new.text), _told_before(new.column_of, job, turns, new)
    if now in (turns.both, before):
        return None
    if before == turns.both:
        return _elsewhere(now)
    why = "its declaration says others for its arguments, so nobody can tell the new ones"
    raise _unknown(job, turns, why)


def refuse_unkept(new: Elsewhere) -> Steps[None]:
    """Look whether the new turns are kept here, as at a submit.

    Raises:
        FencerowError: a limit is not defined, or a living worker does not know the rule.
    """
    yield from refuse_older(needed_of(exclusive=new.exclusive, limits=new.limits))
    if new.limits:
        yield from refuse_unknown_limits(new.limits)


def leave(jobs: Sequence[Row]) -> Steps[None]:
    """Say that all gates of these jobs are to be looked at. `jobs`: of each what was read of it."""
    left = (gates_of(*map(text_or_none, read)) for read in jobs)
    yield from gating().look_again({gate for gates in left for gate in gates})


def _elsewhere(turns: Turns) -> Elsewhere:
    key, limits = turns
    place = f"{KEY}{key}" if key is not None else f"{LIMIT}{limits[0]}" if limits else None
    return Elsewhere(place, key, limits)


def _turns_of(column_of: Callable[[str, str], Any], args: str) -> Turns:
    return column_of("exclusive", args), column_of("limits", args)


def _told_before(
    column_of: Callable[[str, str], Any], job: Idle, turns: HadTurns, new: NewArguments
) -> Turns | None:
    """Those of the arguments before; None if they do not fit the declaration any more, or cannot be opened here.

    Raises:
        InvalidInput: they lie outside the database, and their store would be waited for in an event loop.
    """
    if job.args is None:
        return None
    try:
        version = args_version_of((job.options or "null").encode())
        plain = job.args if new.opened is None else new.opened(job.id, job.args, version)
        return _turns_of(column_of, plain)
    except BlockingCall:
        why = "its arguments lie outside the database: say `change` in a thread, where their store may be waited for"
        raise _unknown(job, turns, why) from None
    except FencerowError:
        return None


def _unknown(job: Idle, turns: HadTurns, why: str) -> InvalidInput:
    named = [] if turns.exclusive is None else [f"the exclusive key {turns.exclusive!r}"]
    named += [] if turns.limits is None else [f"the limits {', '.join(turns.limits)}"]
    return InvalidInput(
        f"job {job.id} was submitted with {' and '.join(named) or 'no exclusive key and no limits'}",
        why,
        "change it by the client of its app (-A on the command line), or cancel it and submit the work again",
    )
