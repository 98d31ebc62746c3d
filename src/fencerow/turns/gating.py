"""What the core asks of gates where it stores and moves jobs: see `core/store/gating.py`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fencerow.core.db.run import Steps, execute
from fencerow.core.model.job import NewJob
from fencerow.turns.limiting import refuse_unknown_limits


class Gates:
    """It remembers nothing."""

    def come(self, jobs: Sequence[NewJob]) -> Steps[None]:
        """Say that new jobs come to their gates.

        Raises:
            FencerowError: one of them names a limit that nobody defined.
        """
        waiting = [job for job in jobs if job.gate is not None]
        if named := {name for job in waiting for name in job.limits or ()}:
            yield from refuse_unknown_limits(sorted(named))
        yield from self.look_again({job.gate for job in waiting if job.gate is not None})

    def look_again(self, gates: Collection[str]) -> Steps[None]:
        """Say that these gates are to be looked at."""
        if gates:
            yield from execute("arrive", gates=sorted(gates))

    def gates_of(self, exclusive: str | None, limits: str | None) -> tuple[str, ...]:
        """All gates of a job with this key and these limits."""
        from fencerow.turns.gates import gates_of  # who only submits never loads it

        return gates_of(exclusive, limits)

    def refuse_unknown(self, limits: Sequence[str]) -> Steps[None]:
        """Look whether jobs may name these limits.

        Raises:
            FencerowError: one of them is not defined.
        """
        yield from refuse_unknown_limits(limits)
