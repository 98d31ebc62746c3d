"""A commit on a user's own connection that raised: only a refusal by the server is taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.db.adapters.hold import is_doubtful
from fencerow.db.postgres import PostgresEngine


@pytest.mark.parametrize(
    ("state", "doubtful"),
    [(None, True), ("08006", True), ("57P01", True), ("23505", False), ("40001", False)],
)
def test_a_commit_is_in_doubt_unless_a_server_refused_it(state: str | None, doubtful: bool) -> None:
    engine: Any = object.__new__(PostgresEngine)

    assert is_doubtful(RuntimeError("at the commit"), state, engine) is doubtful
