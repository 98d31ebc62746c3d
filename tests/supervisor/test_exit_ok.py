"""Exit code 0 of one process."""

from __future__ import annotations

import signal
from pathlib import Path

from fencerow.db.errors import exits
from tests.supervisor.test_supervisor import Start, behave


def test_one_that_ends_with_it_and_has_not_said_that_it_is_done_is_started_again(
    start: Start,
    tmp_path: Path,
) -> None:
    behave(tmp_path, leave=exits.OK)
    parent = start(1)

    parent.until("ready", 2)
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert "process 1 ended with exit code 0 and did not say why; it is started again" in parent.log
