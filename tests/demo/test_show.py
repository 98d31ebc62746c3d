"""The show itself, run as a user runs it: real processes, a real SIGKILL, no terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencerow.demo.show import samples


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fencerow.cli.main", "demo", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def sample(name: str) -> str:
    return str(next(path for path in samples() if path.name == name))


@pytest.mark.prove  # `.ci/run` plays the demo by itself
def test_a_killed_worker_costs_one_attempt_and_every_job_ends_once(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_text("this is no PDF")

    ran = demo(sample("annual_report.pdf"), sample("receipt.pdf"), str(broken), "--exit")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "once more: the same job" in ran.stdout
    assert "See it in a browser: http://127.0.0.1:" in ran.stdout  # nobody's browser is opened
    assert "with SIGKILL while it reads annual_report.pdf" in ran.stdout
    assert "annual_report.pdf: succeeded in attempt 2" in ran.stdout
    assert "receipt.pdf: succeeded" in ran.stdout
    assert "broken.pdf: failed in attempt" in ran.stdout
    assert "reclaimed" in ran.stdout
    assert "3 jobs: 1 failed, 2 succeeded" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


def test_every_sample_comes_with_the_package() -> None:
    assert len(samples()) >= 8


def test_a_file_that_is_not_there_is_refused_before_anything_starts() -> None:
    ran = demo("no-such-file.pdf")

    assert ran.returncode == 2
    assert "no-such-file.pdf" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 3
