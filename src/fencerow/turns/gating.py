"""What the core asks of gates where it stores and moves jobs: see `core/store/gating.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fencerow.core.db.run import Row, Steps, execute, text_or_none
from fencerow.core.model.job import NewJob
from fencerow.turns.limiting import refuse_unknown_limits

if TYPE_CHECKING:
    from fencerow.core.model.change import NewArguments
    from fencerow.core.store.gating import Elsewhere
    from fencerow.core.store.idle import Idle


class Gates:
    """It remembers nothing."""

    def said(self, job: NewJob) -> tuple[object, ...]:
        """What turns/*/submit.sql reads."""
        return job.gate, job.exclusive, job.limits, job.share, job.affinity

    def copied(self, job: NewJob) -> tuple[object, ...]:
        """Its gate, then the turn columns of a submit in their order (turns/*/columns.sql)."""
        template = job.template
        limits = None if job.limits is None else _array(job.limits)
        wait_s = None if job.affinity is None else template.affinity_wait_s
        key = (job.exclusive, template.exclusive_at_once, template.strict)
        return job.gate, *key, limits, job.share, job.affinity, wait_s

    def come(self, jobs: Sequence[NewJob]) -> Steps[None]:
        """Say that new jobs come to their gates.

        Raises:
            FencerowError: one of them names a limit that nobody defined.
        """
        waiting = [job for job in jobs if job.gate is not None]
        if named := {name for job in waiting for name in job.limits or ()}:
            yield from refuse_unknown_limits(sorted(named))
        yield from self.look_again({job.gate for job in waiting if job.gate is not None})

    def look_again(self, places: Collection[str]) -> Steps[None]:
        """Say that these gates are to be looked at."""
        if places:
            yield from execute("arrive", gates=sorted(places))

    def elsewhere(self, job: Idle, new: NewArguments) -> Elsewhere | None:
        """The turns that a job needs with new arguments; None: those that it has.

        Raises:
            InvalidInput: nobody can tell.
        """
        from fencerow.turns.changing import new_turns  # who only submits never loads it

        return new_turns(job, new)

    def refuse_unkept(self, elsewhere: Elsewhere) -> Steps[None]:
        """Look whether the new turns are kept here.

        Raises:
            FencerowError: a limit is not defined, or a living worker does not know the rule.
        """
        from fencerow.core.model.rules import needed_of
        from fencerow.core.store.workers import refuse_older

        key, limits = (value for _, value in elsewhere.says)
        yield from refuse_older(needed_of(exclusive=key, limits=limits))
        if isinstance(limits, tuple) and limits:
            yield from refuse_unknown_limits(limits)

    def leave(self, jobs: Sequence[Row]) -> Steps[None]:
        """Say that all gates of these jobs are to be looked at."""
        from fencerow.turns.gates import gates_of

        left = (gates_of(*map(text_or_none, read)) for read in jobs)
        yield from self.look_again({gate for gates in left for gate in gates})

    def told_apart(self, was: Row, now: Row) -> dict[str, tuple[Any, Any]]:
        """Another key, or other limits."""
        from fencerow.turns.changing import told_apart

        return told_apart(was, now)


def _array(texts: Iterable[str]) -> str:
    """An array of texts as PostgreSQL reads one."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
