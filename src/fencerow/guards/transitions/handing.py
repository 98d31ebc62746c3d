"""Leases of rows that an attempt of a job took: they pass to the job's next attempt, as its mutexes do.

Beside the claim a line says which attempt made it, under which fence. A later attempt of the same job may claim the
row while the fence is still that one, however long the lease runs. The line needs no end of its own: once the row was
claimed anew its fence is another, and the line says nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencerow.core.store.running import Running
from fencerow.db.queries import Queries
from fencerow.db.run import Steps, execute, execute_composed, operation
from fencerow.guards.names import literal, quoted
from fencerow.guards.transitions.declaring import Lease
from fencerow.guards.transitions.machine import DeclaredTable, Machine
from fencerow.guards.transitions.outcome import Record

KEPT_S = 7 * 86_400.0  # beyond the lease, for one that is renewed; after that the row waits for its lease

POSTGRES = """
SELECT coalesce(has_table_privilege(ours, 'SELECT') AND has_table_privilege(ours, 'INSERT')
                AND has_table_privilege(ours, 'UPDATE'), false) AS noted
FROM to_regclass({name}) AS ours
"""
SQLITE = "SELECT count(*) > 0 AS noted FROM sqlite_master WHERE type = 'table' AND name = {name}"

LEFT = """EXISTS (
        SELECT 1 FROM fencerow.row_leases AS fencerow_left
        WHERE fencerow_left.target = {target}
          AND fencerow_left.sub = {sub}
          AND fencerow_left.row_id = CAST({row}.{id} AS text)
          AND fencerow_left.fence = {row}.{fence}
          AND fencerow_left.job_id = {job}
          AND fencerow_left.attempt < {attempt})"""
NOTE = """INSERT INTO fencerow.row_leases (target, sub, row_id, fence, job_id, attempt, until)
SELECT {target}, {sub}, CAST({row}.{id} AS text), {row}.{fence}, {job}, {attempt}, {until}
FROM {table}
WHERE {row}.{id} = :fencerow_id
ON CONFLICT (target, sub, row_id) DO UPDATE
SET fence = excluded.fence, job_id = excluded.job_id, attempt = excluded.attempt, until = excluded.until"""


class HandedFence:
    """What one attempt takes for itself, and what an older attempt of its job has left to it."""

    def __init__(self, declared: DeclaredTable, queries: Queries, attempt: Running) -> None:
        self._declared = declared
        self._queries = queries
        self._attempt = attempt

    @property
    def params(self) -> Mapping[str, Any]:
        """What the condition is given."""
        return {"fencerow_job": self._attempt.job_id, "fencerow_attempt": self._attempt.attempt}

    def left(self, machine: Machine, lease: Lease) -> str:
        """The lease that runs was taken by an older attempt of this job.

        Guard: the job, that the attempt is older, and the fence, which says that nobody has claimed the row since.
        """
        return LEFT.format(**self._words(machine, lease))

    def note(self, machine: Machine, lease: Lease, rows: Sequence[Record]) -> Steps[None]:
        """Say which attempt has claimed these rows, in the claim's own transaction."""
        query = self._queries.composed("note_row_lease", NOTE.format(**self._words(machine, lease)))
        for row in rows:
            params = {
                **self.params,
                "fencerow_id": row[self._declared.id],
                "fencerow_kept_s": lease.lease_s + KEPT_S,
            }
            yield from execute_composed(query, params)

    def _words(self, machine: Machine, lease: Lease) -> dict[str, str]:
        table = self._declared.table
        row, postgres = quoted(table.name), self._queries.dialect == "postgres"
        return {
            "table": table.quoted,
            # The table itself, not its name, which another schema may have too.
            "target": f"CAST({row}.tableoid AS text)" if postgres else literal(table.quoted),
            "sub": literal(machine.name),
            "row": row,
            "id": quoted(self._declared.id),
            "fence": quoted(lease.fence),
            "job": "CAST(CAST(:fencerow_job AS text) AS uuid)" if postgres else ":fencerow_job",
            "attempt": "CAST(:fencerow_attempt AS bigint)" if postgres else ":fencerow_attempt",
            "until": "fencerow.now() + fencerow.seconds(:fencerow_kept_s)"
            if postgres
            else "fencerow.now() + CAST(:fencerow_kept_s * 1000000 AS INTEGER)",
        }


def may_note(queries: Queries) -> Steps[bool]:
    """Whether our table is there and this role may write it; else rows wait for their leases, as without a job."""
    text = POSTGRES if queries.dialect == "postgres" else SQLITE
    query = queries.composed("may_note_row_leases", text.format(name=literal(queries.name_of("row_leases"))))
    rows = yield from execute_composed(query, {})
    return bool(rows[0]["noted"])


@operation(alone=True)
def purge_row_leases(*, limit: int) -> Steps[int]:
    """Forget lines about leases that ended long ago; returns how many."""
    return len((yield from execute("purge_row_leases", limit=limit)))
