"""What a handler is given of its attempt: the core's `Job`, with the verbs of all wings.

Said once, when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencerow.core.worker.context import Job

_given: Callable[[], type[Job]] | None = None


def give(job: Callable[[], type[Job]]) -> None:
    """From now on handlers are given this. It is asked for by the first attempt whose handler sees its job."""
    global _given
    _given = job


def job_type() -> type[Job]:
    """The class."""
    assert _given is not None, "the package says it when it is imported"
    return _given()
