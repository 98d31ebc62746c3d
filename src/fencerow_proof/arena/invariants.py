"""What must hold whatever happened: queries over the tables, and the history of what was seen of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from fencerow.core.model.state import FINAL, State
from fencerow.db.queries import qualified, split
from fencerow.db.query_files import parse
from fencerow.db.run import Rows, as_int
from fencerow_proof.moves import RULES
from fencerow_proof.sql import ANYTHING

# Of an ephemeral job that succeeded its id is left.
SNAPSHOT = """
SELECT job.id, job.state, job.attempt, job.holder FROM fencerow.all_jobs AS job
UNION ALL
SELECT spent.id, 'succeeded', spent.attempt, NULL FROM fencerow.spent_ids AS spent
WHERE NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = spent.id)
"""
LOOKED_AT = ("jobs", "spent_ids")  # how the names of its tables end, in each dialect


@dataclass(frozen=True, slots=True)
class Standing:
    """What one look says of a job."""

    state: State
    attempt: int
    holder: str | None


@lru_cache(maxsize=1)
def invariants() -> Mapping[str, str]:
    """The queries by name, tables written `fencerow.jobs`; each returns the rows that break it."""
    text = files("fencerow_proof.arena").joinpath("invariants.sql").read_text("utf-8")
    return {name: split(body)[0] for name, body in parse(text)}


def together(rename: Callable[[str], str]) -> str:
    """All the invariants in one statement that returns the names of the broken ones: one round trip."""
    return " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS ({qualified(text, rename)})" for name, text in invariants().items()
    )


EDGES = frozenset(
    (source, target)
    for rule in RULES.values()
    for source in rule.sources
    for target in (rule.leads(source), *rule.otherwise)
    if target is not None
)


def would_show(changed: Iterable[str]) -> bool:
    """Whether `SNAPSHOT` may differ after these tables were changed."""
    return any(table == ANYTHING or table.endswith(LOOKED_AT) for table in changed)


@dataclass(slots=True)
class History:
    """Looks at the tables in the order they were taken; `wrong` fills with what may never happen between two.

    Looks taken after every commit see every move; one that missed some still sees an attempt that fell and
    a job that was lost.
    """

    wrong: list[str] = field(default_factory=list)
    _last: dict[str, Standing] = field(default_factory=dict)

    def look(self, rows: Rows, *, moves: int = 1) -> None:
        """Take in the rows of `SNAPSHOT`, after so many transactions (1: then every move must be an edge)."""
        now = {
            str(row[0]): Standing(State(str(row[1])), as_int(row[2]), None if row[3] is None else str(row[3]))
            for row in rows
        }
        if len(now) != len(rows):
            self.wrong.append("a job is in both tables")
        for job_id, before in self._last.items():
            after = now.get(job_id)
            if after is None:
                self._missing(job_id, before)
            elif after != before:
                self._moved(job_id, before, after, moves == 1)
        self._last = now

    def _missing(self, job_id: str, before: Standing) -> None:
        if before.state not in FINAL:
            self.wrong.append(f"job {job_id} was {before.state} and is nowhere")

    def _moved(self, job_id: str, before: Standing, after: Standing, one_move: bool) -> None:
        if after.attempt < before.attempt:
            self.wrong.append(f"the attempt of {job_id} fell from {before.attempt} to {after.attempt}")
        if before.state is State.RUNNING and after.state is State.RUNNING and after.attempt == before.attempt:
            self.wrong.append(f"attempt {before.attempt} of {job_id} changed its holder")
        if one_move and after.state != before.state and (before.state, after.state) not in EDGES:
            self.wrong.append(f"job {job_id} went from {before.state} to {after.state}")
        if one_move and after.attempt > before.attempt and after.state is not State.RUNNING:
            self.wrong.append(f"job {job_id} came to attempt {after.attempt} without a claim")
