"""examples/django: its own tests pass on both engines."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.whole.django_shop.conftest import manage

pytestmark = pytest.mark.skipif(
    find_spec("django.tasks") is None and find_spec("django_tasks") is None,
    reason="this Django has no tasks, and django-tasks is not installed",
)


def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    played = manage(environment, "test", "--noinput")

    assert played.returncode == 0, played.stderr
    assert "Ran 4 tests" in played.stderr
