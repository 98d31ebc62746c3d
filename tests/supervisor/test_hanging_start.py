"""New code that hangs in its import: it is told of and has an end, and a newer restart or an order replaces it."""

from __future__ import annotations

import signal
from pathlib import Path

from fencerow.db.errors import exits
from tests.kit.pace import slower
from tests.supervisor.test_supervisor import Start, behave


def test_a_second_restart_replaces_what_hangs(start: Start, tmp_path: Path) -> None:
    parent = start(1)
    (old,) = parent.until("ready")
    behave(tmp_path, hangs=True)
    parent.signal(signal.SIGHUP)
    parent.until("hangs")

    (tmp_path / "do").unlink()
    parent.signal(signal.SIGHUP)
    parent.until("ready", 2)
    assert parent.until("leaves") == [old]
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert "process 1, which was not ready yet, is replaced" in parent.log


def test_a_start_has_a_limit(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, hangs=True)
    parent = start(1, start_s=slower(1.0))
    parent.until("hangs")
    (tmp_path / "do").unlink()

    parent.until("ready")
    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert "process 1 was killed: it has not started within" in parent.log


def test_one_that_hangs_in_its_start_keeps_no_order_waiting(start: Start, tmp_path: Path) -> None:
    behave(tmp_path, hangs=True)
    parent = start(1, slow_start_s=0.0, unwell_s=0.0)
    parent.until("hangs")

    parent.signal(signal.SIGTERM)

    assert parent.end() == exits.OK
    assert "process 1 has been starting for" in parent.log
