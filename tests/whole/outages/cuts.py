"""What to cut on the way to a PostgreSQL server, by a piece of the statement's text."""

from __future__ import annotations

OF_WORKERS = {
    "claim": "WITH ORDINALITY AS lane (mark, position)",
    "success": "AS o (id uuid, attempt bigint, result text)",
    "commit of job.transaction()": "COMMIT",
    "renewal": 'UPDATE "fencerow".workers',
    "effect": "INSERT INTO fencerow.paid",
}
OF_CALLERS = {"submit": 'INSERT INTO "fencerow".jobs', "commit of a keyed submit": "COMMIT"}
