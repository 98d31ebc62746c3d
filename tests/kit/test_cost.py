"""The meter of costs looks at processes of others, which end when they like: it must never fail a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit import cost


def test_a_process_that_has_ended_has_nothing_below_it_and_used_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()

    assert list(cost._below(ended.pid)) == []
    assert cost._used_s(ended.pid) == 0.0


def test_a_name_that_is_cut_off_within_a_letter_is_read(tmp_path: Path) -> None:
    line = tmp_path / "stat"
    line.write_bytes("7 (Zäune)".encode()[:5] + b") S")

    assert cost._read(line).endswith(") S")
