"""What a caller is told when an operation was tried again."""

from __future__ import annotations

import psycopg
import pytest

from fencerow.db.preparing import Preparing
from fencerow.db.run import Operation, Steps
from fencerow.db.tries import Try, tries
from fencerow.errors import OutcomeUnknown

LOST = psycopg.OperationalError("server closed the connection unexpectedly")
FULL = psycopg.errors.DiskFull("could not extend file")


def steps() -> Steps[None]:
    yield from ()


@pytest.mark.parametrize("committing", [True, False])
def test_that_the_repeat_stored_nothing_says_nothing_of_a_try_that_may_have(committing: bool) -> None:
    trying = tries(Operation("change", steps, repeatable=True), Preparing(wanted=False))
    first = next(trying)
    assert isinstance(first, Try)
    first.committing = committing

    assert isinstance(trying.throw(LOST), Try)
    with pytest.raises(OutcomeUnknown if committing else psycopg.errors.DiskFull):
        trying.throw(FULL)
