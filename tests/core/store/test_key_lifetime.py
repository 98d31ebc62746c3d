"""How long a key is kept comes from whoever submits: one without an end would never be forgotten."""

from __future__ import annotations

import psycopg
import pytest

from fencerow.core.model.ids import new_id
from fencerow.db.postgres import PostgresEngine


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "-Infinity", "1e300", "-1"])
def test_a_lifetime_that_is_no_number_of_seconds_is_refused_by_the_table(
    pg: PostgresEngine, wrong: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation), pg.session() as session:
        session.connection.execute(
            "INSERT INTO fencerow.keys (scope, key, job_id, fingerprint, lifetime_s, created_at)"
            " VALUES ('s', 'k', %s, 'f', %s, now())",
            [new_id(), wrong],
        )
