"""Where a job waits for its turn: at the gate of a key or of a limit, and who is before it there. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencerow.core.model.job import JobRecord
from fencerow.db.run import Steps, operation
from fencerow.turns import keys
from fencerow.turns.gates import LIMIT, NOWHERE
from fencerow.turns.keys import PREFIX, ExclusiveKey

if TYPE_CHECKING:
    from fencerow.limits.looking import LimitTurns

PATIENCE_S = 1.0  # for who asks beside something else: no answer is better than a late one


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlace:
    """How many come before a job at its gate, counted up to 1,000, and who has the turns there. `limit` is None if
    nobody defined it."""

    gate: str
    before: int
    key: ExclusiveKey | None = None
    limit: LimitTurns | None = None

    @property
    def what(self) -> str:
        """What the gate is of, for people."""
        return told_gate(self.gate)


def told_gate(gate: str) -> str:
    """What a gate is of, for people."""
    if gate == NOWHERE:
        return "a gate that its key and limits do not name: they cannot be read"
    if gate.startswith(PREFIX):
        return f"the exclusive key {gate.removeprefix(PREFIX)}"
    return f"the limit {gate.removeprefix(LIMIT)}"


@operation(repeatable=True, writes="", reads="both", patience_s=PATIENCE_S)
def place(job: JobRecord) -> Steps[GatePlace | None]:
    """Where a job waits for its turn; None if it waits for none."""
    if job.gate is None:
        return None
    _, before, _ = yield from keys.counted_at(job.gate, job.priority, job.run_at_us, job.id)
    if job.gate.startswith(PREFIX):
        key = yield from keys.look(job.gate.removeprefix(PREFIX), limit=1).steps()
        return GatePlace(gate=job.gate, before=before, key=key)
    if job.gate == NOWHERE:
        return GatePlace(gate=job.gate, before=before)
    from fencerow.limits import looking  # only who asks of a limit loads all that limits need

    limit = yield from looking.look(job.gate.removeprefix(LIMIT), limit=1).steps()
    return GatePlace(gate=job.gate, before=before, limit=limit)
