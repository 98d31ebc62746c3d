"""A SQLite file that is replaced under a running program."""

from __future__ import annotations

import shutil

import pytest

from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import ReadOnly
from tests.kit.jobs import new_job


def test_the_error_says_that_the_file_was_replaced(lite: SqliteEngine) -> None:
    lite.run(store.submit([new_job()]))
    copied = lite.path.with_suffix(".new")
    shutil.copy(lite.path, copied)
    copied.replace(lite.path)

    with pytest.raises(ReadOnly, match="was replaced") as refused:
        lite.run(store.submit([new_job()]))

    assert "restart" in refused.value.fix
