"""Django's own tests of its task backends, played against ours: see `oracle.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SOURCE = "FENCEROW_DJANGO_SOURCE"


@pytest.mark.prove
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Django 6 needs Python 3.12")
@pytest.mark.skipif(
    SOURCE not in os.environ, reason=f"{SOURCE} names no source of Django 6, which has tests/tasks"
)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_djangos_own_tests_pass(engine: str) -> None:
    command = [sys.executable, "-m", "tests.django.oracle", os.environ[SOURCE], "--engine", engine]
    played = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    assert played.returncode == 0, played.stderr[-4000:]
    assert "of Django's tests" in played.stdout
