"""What the core asks of gates where it stores and moves jobs: see `core/store/gating.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencerow.core.model.job import NewJob
from fencerow.db.run import Param, Statement, Steps, execute
from fencerow.turns import at_submit
from fencerow.turns.limiting import refuse_unknown_limits


class Gates:
    """It remembers nothing."""

    def said(self, job: NewJob) -> tuple[object, ...]:
        """What turns/*/submit.sql reads."""
        return job.gate, job.exclusive, job.limits, job.share, job.affinity

    def said_alone(self, job: NewJob) -> str | None:
        """Its share: a label, a key or a limit goes the long way."""
        return job.share

    def copied(self, job: NewJob) -> tuple[object, ...]:
        """Its gate, then the turn columns of a submit in their order (turns/*/columns.sql)."""
        template = job.template
        limits = None if job.limits is None else _array(job.limits)
        wait_s = None if job.affinity is None else template.affinity_wait_s
        key = (job.exclusive, template.exclusive_at_once, template.strict)
        return job.gate, *key, limits, job.share, job.affinity, wait_s

    def placed(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """Where nobody is at its key, the first that needs limits too waits at a limit."""
        return (yield from at_submit.placed(jobs))

    def turned(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """The first of each key where nobody is. It locks the rows of their gates."""
        return (yield from at_submit.turned(jobs))

    def stands_alone(self, job: NewJob) -> bool:
        """One of a key that needs no other turn and is due now."""
        return at_submit.stands_alone(job)

    def alone(self, job: NewJob, params: Mapping[str, Param]) -> Statement:
        """It locks the row of its gate."""
        return at_submit.alone(job, params)

    def free(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """The first of each key where nobody is."""
        return (yield from at_submit.free(jobs))

    def turned_of_free(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """It locks the rows of their gates."""
        return (yield from at_submit.turned_of_free(jobs))

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


def _array(texts: Iterable[str]) -> str:
    """An array of texts as PostgreSQL reads one."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
